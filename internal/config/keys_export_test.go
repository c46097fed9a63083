package config

import (
	"reflect"
	"strings"
)

// Key describes one key for a manual.
type Key struct {
	// Name is the dotted key; <name> and <type> stand for any, [] for each
	// entry of a list.
	Name string
	// Unit says what the value is: a duration, a number of rows, the words
	// that are accepted.
	Unit string
	// Default is the default as it would be written, or what it depends on;
	// empty where there is none.
	Default string
}

// Keys lists every key, in the order of the file.
func Keys(kinds Kinds) []Key {
	return names{types: []string{"<type>"}, sources: []string{"<name>"}, sinks: kinds.Sinks}.keysUnder(reflect.TypeFor[Config](), "", "")
}

// keysUnder lists the keys of a section. inherit is the section from which
// what is not set is taken, or "".
func (n names) keysUnder(t reflect.Type, path, inherit string) []Key {
	var keys []Key
	for _, f := range n.fieldsOf(t) {
		at := join(path, f.key)
		from := inherit
		if from != "" {
			from = join(inherit, f.key)
		}
		if f.entry != "" {
			from = join(path, "observer")
		}
		switch shapeOf(f.typ) {
		case section:
			keys = append(keys, n.keysUnder(f.typ, at, from)...)
		case table:
			keys = append(keys, n.keysUnder(f.typ.Elem(), at+".<name>", "")...)
		case list:
			keys = append(keys, n.keysUnder(f.typ.Elem(), at+"[]", "")...)
		default:
			keys = append(keys, Key{Name: at, Unit: f.unit(), Default: f.shown(from)})
		}
	}
	return keys
}

// shown is the default for people. Every setting of a type but its switch is
// taken from the settings for all types.
func (f field) shown(inherit string) string {
	if inherit != "" && !strings.HasSuffix(inherit, ".enabled") {
		return inherit
	}
	if shown := f.tag.Get("shown"); shown != "" {
		return shown
	}
	return f.tag.Get("default")
}
