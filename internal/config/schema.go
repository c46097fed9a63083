package config

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/config/dburl"
	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/fn"
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
	ofSections := t.Kind() == reflect.Map || t.Kind() == reflect.Slice
	ofSections = ofSections && shapeOf(t.Elem()) == section
	switch {
	case t.Kind() == reflect.Map && ofSections:
		return table
	case t.Kind() == reflect.Map:
		return pairs
	case t.Kind() == reflect.Slice && ofSections:
		return list
	case t.Kind() == reflect.Slice:
		return words
	case t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return section
	}
	return scalar
}

// isSecret reports whether values of the type, or those in it, hold secrets.
func isSecret(t reflect.Type) bool {
	return slices.Contains([]reflect.Type{reflect.TypeFor[URL](), reflect.TypeFor[field.URL](), reflect.TypeFor[field.Secret]()}, ofEach(t))
}

// ofEach is the type of the values of a list or a mapping, or the type itself.
func ofEach(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
		return t.Elem()
	}
	return t
}

// place is a key with its value, or an entry of a table or list. What its struct declares
// and what the layers, the values and the manual say all come from one walk over places.
type place struct {
	// key is what is written, at the dotted key.
	key, at string
	tag     reflect.StructTag
	value   reflect.Value
	// file says that a secret may be in a file, which the key KEY-file names.
	file bool
	// entry is set for what a name or a number introduces. table is the map of which value
	// is a copy, under that name.
	entry bool
	table reflect.Value
	name  string
}

func (p place) shape() shape { return shapeOf(p.value.Type()) }

// store puts the value back into the map of which it is a copy.
func (p place) store() {
	if p.table.IsValid() {
		p.table.SetMapIndex(reflect.ValueOf(p.name), p.value)
	}
}

// names are the names that a configuration introduces, and the kinds of each family: they
// decide which keys it has.
type names struct {
	types, sources []string
	kinds          map[string][]kind.Kind[kind.Settings]
	// variables are for the values that decide which keys there are.
	variables variables
	// byID has entries of lists go by their id.
	byID bool
}

// empty returns a configuration without values that has all named sections but the
// entries of lists.
func (n names) empty() *Config {
	cfg := &Config{Scheduler: Scheduler{Types: make(map[string]Settings)}, Sources: make(map[string]Source)}
	for _, name := range n.types {
		cfg.Scheduler.Types[name] = Settings{}
	}
	for _, name := range n.sources {
		cfg.Sources[name] = Source{}
	}
	return cfg
}

// walk visits the places below a section, a table or a list, in order. It goes below those
// for which visit returns true.
func (n names) walk(v reflect.Value, path string, visit func(place) bool) {
	for _, p := range n.below(v, path) {
		if visit(p) {
			n.walk(p.value, p.at, visit)
		}
	}
}

func (n names) below(v reflect.Value, path string) (all []place) {
	switch shapeOf(v.Type()) {
	case section:
		return n.keys(v, path)
	case table:
		for _, name := range sortedKeys(v) {
			all = append(all, entryOf(v, name, join(path, name)))
		}
	case list:
		for i := range v.Len() {
			at := fmt.Sprintf("%s[%d]", path, i)
			if id := v.Index(i).FieldByName("ID"); n.byID && id.IsValid() {
				at = join(path, id.String())
			}
			all = append(all, place{at: at, value: v.Index(i), entry: true})
		}
	}
	return all
}

// keys lists the keys of a section in the order of the struct. An embedded struct without
// a key lends its own, as do the settings of a kind, and "<type>-observer" is one key for
// each type.
func (n names) keys(v reflect.Value, path string) (all []place) {
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		key := f.Tag.Get("key")
		suffix, ofTypes := strings.CutPrefix(key, "<type>")
		switch {
		case !f.IsExported():
		case ofTypes:
			for _, name := range sortedKeys(value) {
				p := entryOf(value, name, join(path, name+suffix))
				p.key = name + suffix
				all = append(all, p)
			}
		case f.Type == reflect.TypeFor[kind.Settings]():
			if !value.IsNil() {
				all = append(all, n.keys(value.Elem().Elem(), path)...)
			}
		case f.Anonymous && key == "":
			all = append(all, n.keys(value, path)...)
		default:
			all = append(all, place{key: key, at: join(path, key), tag: n.withKinds(f.Tag), value: value, file: isSecret(f.Type) && hasKey(v.Type(), key+"-file")})
		}
	}
	return all
}

func hasKey(t reflect.Type, key string) bool {
	return slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Tag.Get("key") == key })
}

// entryOf returns a copy of an entry, which can be set.
func entryOf(m reflect.Value, name, at string) place {
	entry := reflect.New(m.Type().Elem()).Elem()
	entry.Set(m.MapIndex(reflect.ValueOf(name)))
	return place{at: at, value: entry, entry: true, table: m, name: name}
}

// leaves returns the dotted keys that hold one text each, or names. Lists of sections
// have none.
func (n names) leaves() (keys []string) {
	n.walk(reflect.ValueOf(n.empty()).Elem(), "", func(p place) bool {
		if shape := p.shape(); shape == scalar || shape == words {
			keys = append(keys, p.at)
		}
		return p.shape() != list
	})
	return keys
}

// withKinds puts the names of the kinds of a family into the words that a key accepts.
func (n names) withKinds(tag reflect.StructTag) reflect.StructTag {
	for name, kinds := range n.kinds {
		all := fn.Each(kinds, func(k kind.Kind[kind.Settings]) string { return k.Name })
		tag = reflect.StructTag(strings.Replace(string(tag), `oneof:"<`+name+`>"`, `oneof:"`+strings.Join(all, "|")+`"`, 1))
	}
	return tag
}

func sortedKeys(m reflect.Value) []string {
	return fn.Distinct(fn.Each(m.MapKeys(), reflect.Value.String))
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// unit says what a value is, for people.
func (p place) unit() string {
	if unit := p.tag.Get("unit"); unit != "" {
		return unit
	}
	if words, ok := p.tag.Lookup("oneof"); ok {
		return cmp.Or(strings.ReplaceAll(words, "|", ", "), "name") // Of a family without kinds any.
	}
	switch ofEach(p.value.Type()) {
	case reflect.TypeFor[time.Duration](), reflect.TypeFor[*time.Duration]():
		return "duration"
	case reflect.TypeFor[Percent]():
		return "percent"
	case reflect.TypeFor[field.Secret]():
		return "secret"
	case reflect.TypeFor[field.URL]():
		return "URL"
	case reflect.TypeFor[field.Template]():
		return "template"
	}
	return "true, false"
}

// Kinds are the kinds of database servers, of sinks and of lock providers that the program
// knows. They reach this package as values, so that a new kind changes nothing here.
type Kinds struct {
	Servers              dburl.Kinds
	Sinks, LockProviders []kind.Kind[kind.Settings]
	// CheckLocks returns the mistakes in the policies and hierarchies of locks, whose
	// rules this package does not know; nil checks nothing.
	CheckLocks func(Locks) []LocksMistake
}

// byFamily has the kinds by the words that stand for them in the tags kinds and oneof.
func (k Kinds) byFamily() map[string][]kind.Kind[kind.Settings] {
	return map[string][]kind.Kind[kind.Settings]{"sinks": k.Sinks, "lock-providers": k.LockProviders}
}

// family is where a section has the settings of its kind, and which kinds there are.
// Sections without have no kinds.
type family struct {
	settings reflect.Value
	// section is what one is called, and kind the name of the one that was chosen.
	section, kind string
	kinds         []kind.Kind[kind.Settings]
}

func (n names) familyOf(v reflect.Value) family {
	f, ok := v.Type().FieldByName("Settings")
	if !ok || f.Type != reflect.TypeFor[kind.Settings]() {
		return family{}
	}
	name := f.Tag.Get("kinds")
	return family{settings: v.FieldByIndex(f.Index), section: strings.ReplaceAll(strings.TrimSuffix(name, "s"), "-", " "), kinds: n.kinds[name]}
}

// choose gives the section settings of a kind, none of an unknown one.
func (f *family) choose(name string) {
	f.kind = name
	for _, k := range f.kinds {
		if k.Name == name {
			f.settings.Set(reflect.ValueOf(k.Settings()))
		}
	}
}

// with returns the name of a kind that has the key.
func (f family) with(key string) (string, bool) {
	for _, k := range f.kinds {
		if _, ok := find(key, names{}.keys(reflect.ValueOf(k.Settings()).Elem(), "")); ok {
			return k.Name, true
		}
	}
	return "", false
}
