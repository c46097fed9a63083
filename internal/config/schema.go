package config

import (
	"reflect"
	"strings"
	"time"
)

// shape is the form that a value has in the file.
type shape int

const (
	scalar  shape = iota // one text
	words                // one text or a list of texts
	section              // a mapping with known keys
	table                // a mapping of names to sections
	list                 // a list of sections
	pairs                // a mapping of names to texts
)

func shapeOf(t reflect.Type) shape {
	switch {
	case t == reflect.TypeFor[Redactions]():
		return pairs
	case t.Kind() == reflect.Map:
		return table
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return list
	case t.Kind() == reflect.Slice:
		return words
	case t.Kind() == reflect.Struct && t != reflect.TypeFor[URL]():
		return section
	}
	return scalar
}

// field is one key of a section, as its struct declares it.
type field struct {
	key   string
	index []int
	typ   reflect.Type
	tag   reflect.StructTag
	// entry is set where the field is a map and the key stands for one entry
	// of it, of type typ.
	entry string
}

// names are the names that a configuration introduces, and those of the kinds of
// sinks: they decide which keys it has.
type names struct {
	types, sources []string
	sinks          []SinkKind
	// sink is the kind of the sink whose keys are asked for; "" for those of all.
	sink string
	// variables are for the values that decide which keys there are.
	variables variables
}

// fieldsOf lists the keys of a section in the order of the struct. An embedded
// struct without a key lends its own, and "<type>-observer" becomes one key
// for each type.
func (n names) fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		key := f.Tag.Get("key")
		if prefix, suffix, ok := strings.Cut(key, "<type>"); ok {
			for _, name := range n.types {
				fields = append(fields, field{prefix + name + suffix, []int{i}, f.Type.Elem(), f.Tag, name})
			}
			continue
		}
		if f.Type == reflect.TypeFor[SinkSettings]() {
			fields = append(fields, n.settingsOf(i)...)
			continue
		}
		if f.Anonymous && key == "" {
			for _, inner := range n.fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
			continue
		}
		fields = append(fields, field{key: key, index: []int{i}, typ: f.Type, tag: n.withSinkKinds(f.Tag)})
	}
	return fields
}

// withSinkKinds puts the names of the kinds of sinks into the words that a key accepts.
func (n names) withSinkKinds(tag reflect.StructTag) reflect.StructTag {
	if tag.Get("oneof") != "<sinks>" {
		return tag
	}
	var kinds []string
	for _, kind := range n.sinks {
		kinds = append(kinds, kind.Name)
	}
	return reflect.StructTag(strings.Replace(string(tag), "<sinks>", strings.Join(kinds, "|"), 1))
}

// keysOf returns the keys that a section knows.
func (n names) keysOf(t reflect.Type) []string {
	var keys []string
	for _, f := range n.fieldsOf(t) {
		keys = append(keys, f.key)
	}
	return keys
}

// leaves returns the dotted keys that hold one text each, or names, in order.
// Lists of sections have none.
func (n names) leaves(t reflect.Type, path string) []field {
	var found []field
	for _, f := range n.fieldsOf(t) {
		f.key = join(path, f.key)
		switch shapeOf(f.typ) {
		case scalar, words:
			found = append(found, f)
		case section:
			found = append(found, n.leaves(f.typ, f.key)...)
		case table:
			for _, name := range n.sources {
				found = append(found, n.leaves(f.typ.Elem(), join(f.key, name))...)
			}
		}
	}
	return found
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// unit says what a value is, for people.
func (f field) unit() string {
	if unit := f.tag.Get("unit"); unit != "" {
		return unit
	}
	if words := f.tag.Get("oneof"); words != "" {
		return strings.ReplaceAll(words, "|", ", ")
	}
	switch f.typ {
	case reflect.TypeFor[time.Duration](), reflect.TypeFor[*time.Duration]():
		return "duration"
	case reflect.TypeFor[Percent]():
		return "percent"
	}
	return "true, false"
}
