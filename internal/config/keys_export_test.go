package config

import (
	"reflect"
	"regexp"
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
func Keys(kinds Kinds) (keys []Key) {
	n := names{types: []string{"<type>"}, sources: []string{"<name>"}, kinds: kinds.byFamily()}
	cfg, seen := n.empty(), make(map[string]bool)
	cfg.Observers, cfg.Locks.Policies = make([]Observer, 1), make([]LockPolicy, 1)
	cfg.Locks.Providers = make([]LockProvider, 1)
	for _, kind := range kinds.LockProviders {
		cfg.Locks.Providers = append(cfg.Locks.Providers, LockProvider{Settings: kind.Settings()})
	}
	for _, kind := range kinds.Sinks {
		cfg.Sinks = append(cfg.Sinks, Sink{Settings: kind.Settings()})
	}
	n.walk(reflect.ValueOf(cfg).Elem(), "", func(p place) bool {
		name := entryNumber.ReplaceAllString(p.at, "[]")
		if s := p.shape(); s == section || s == table || s == list || seen[name] {
			return true
		}
		seen[name] = true
		keys = append(keys, Key{Name: name, Unit: p.unit(), Default: p.shown()})
		return true
	})
	return keys
}

var (
	entryNumber = regexp.MustCompile(`\[\d+\]`)
	ofAnyType   = regexp.MustCompile(`^scheduler\.<type>-observer\.`)
)

// shown is the default for people. Every setting of a type but its switch is
// taken from the settings for all types.
func (p place) shown() string {
	if shared := ofAnyType.ReplaceAllString(p.at, "scheduler.observer."); shared != p.at && p.key != "enabled" {
		return shared
	}
	if shown := p.tag.Get("shown"); shown != "" {
		return shown
	}
	return p.tag.Get("default")
}
