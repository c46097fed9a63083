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

// kindWith returns the name of a kind of sink that has the key.
func (n names) kindWith(key string) (string, bool) {
	for _, kind := range n.sinks {
		if _, ok := find(key, n.keys(reflect.ValueOf(kind.Settings()).Elem(), "")); ok {
			return kind.Name, true
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
