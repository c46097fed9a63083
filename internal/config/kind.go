package config

import (
	"reflect"
	"strings"

	"github.com/observerd/observerd/internal/config/dburl"
	"github.com/observerd/observerd/internal/kind"
)

// Kinds are the kinds of database servers and of sinks that the program knows. They
// reach this package as values, so that a new kind changes nothing here.
type Kinds struct {
	Servers dburl.Kinds
	Sinks   []kind.Kind[kind.Settings]
	// CheckLocks returns the mistakes in the policies and hierarchies of locks, whose
	// rules this package does not know; nil checks nothing.
	CheckLocks func(Locks) []LocksMistake
}

// byFamily has the kinds by the words that stand for them in the tags kinds and oneof.
func (k Kinds) byFamily() map[string][]kind.Kind[kind.Settings] {
	return map[string][]kind.Kind[kind.Settings]{"sinks": k.Sinks}
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
	return family{settings: v.FieldByIndex(f.Index), section: strings.TrimSuffix(name, "s"), kinds: n.kinds[name]}
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
