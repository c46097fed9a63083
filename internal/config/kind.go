package config

import (
	"reflect"

	"github.com/observerd/observerd/internal/config/dburl"
)

// Kinds are the kinds of database servers and of sinks that the program knows. They
// reach this package as values, so that a new kind changes nothing here.
type Kinds struct {
	Servers dburl.Kinds
	Sinks   []SinkKind
	// CheckLocks returns the mistakes in the policies and hierarchies of locks, whose
	// rules this package does not know; nil checks nothing.
	CheckLocks func(Locks) []LocksMistake
}

// SinkKind is a kind of sink, as the configuration sees it.
type SinkKind struct {
	// Name is what such a sink has as its type.
	Name string
	// Settings returns settings without values.
	Settings func() SinkSettings
}

// SinkSettings are the keys that sinks of one kind have beside those of all sinks: a
// pointer to a struct whose fields have the tags of this package.
type SinkSettings interface {
	// Target names the place that no two sinks may share; "" for none.
	Target() string
}

// ofSink returns the names for a sink of that kind.
func (n names) ofSink(kind string) names {
	n.sink = kind
	return n
}

// settingsOf returns the fields that a sink has beside its own: those of its kind, and
// those of all kinds where none is chosen. index leads to the settings.
func (n names) settingsOf(index int) []field {
	var fields []field
	seen := make(map[string]bool)
	for _, kind := range n.sinks {
		if n.sink != "" && n.sink != kind.Name {
			continue
		}
		for _, f := range n.fieldsOf(reflect.TypeOf(kind.Settings()).Elem()) {
			if !seen[f.key] {
				seen[f.key] = true
				f.index = append([]int{index}, f.index...)
				fields = append(fields, f)
			}
		}
	}
	return fields
}

// kindWith returns the name of a kind of sink that has the key.
func (n names) kindWith(key string) (string, bool) {
	for _, kind := range n.sinks {
		for _, f := range n.fieldsOf(reflect.TypeOf(kind.Settings()).Elem()) {
			if f.key == key {
				return kind.Name, true
			}
		}
	}
	return "", false
}

// newSettings returns settings for a sink of that kind, nil for an unknown one.
func (n names) newSettings(kind string) SinkSettings {
	for _, k := range n.sinks {
		if k.Name == kind {
			return k.Settings()
		}
	}
	return nil
}

// of returns the value of the field in its section, or in the settings of that.
func (f field) of(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}
