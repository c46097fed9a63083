package config

import (
	"reflect"

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

// kindWith returns the name of a kind of sink that has the key.
func (n names) kindWith(key string) (string, bool) {
	for _, k := range n.sinks {
		if _, ok := find(key, n.keys(reflect.ValueOf(k.Settings()).Elem(), "")); ok {
			return k.Name, true
		}
	}
	return "", false
}

// newSettings returns settings for a sink of that kind, nil for an unknown one.
func (n names) newSettings(name string) kind.Settings {
	for _, k := range n.sinks {
		if k.Name == name {
			return k.Settings()
		}
	}
	return nil
}
