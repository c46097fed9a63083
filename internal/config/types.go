package config

import (
	"maps"
	"slices"
	"time"
)

// Type is an observer type that has at least one enabled observer, with its
// effective settings.
type Type struct {
	Name string
	// Enabled is the switch of the type; see also Scheduler.Enabled.
	Enabled bool
	// Interval is the distance between the starts of polls.
	Interval time.Duration
	// Shift is how long after each tick of its interval the type is due;
	// see Shared.Spread.
	Shift time.Duration
	// NotBetween is the time of day in which no poll begins; nil for none.
	NotBetween *Window
	// TTL and Wait are of the type's lock, Region and KeyFormat of its row.
	TTL, Wait         time.Duration
	Region, KeyFormat string
	// LockName is the name that the lock's key is made of.
	LockName string
	// Observers are the enabled ones, in the order of the file.
	Observers []Observer
}

// FreshnessObjective is that of an observer of the type; 0 for none. The default has room
// for two polls that fail, and for the overlap that was set.
func (t Type) FreshnessObjective(o Observer) time.Duration {
	if o.FreshnessObjective != nil {
		return *o.FreshnessObjective
	}
	objective := max(15*time.Minute, 3*t.Interval, 3*o.FixedDelay)
	if o.Overlap != nil {
		objective += *o.Overlap
	}
	return objective
}

// Types returns the types that have work, sorted by name.
func (c *Config) Types() []Type {
	observers := make(map[string][]Observer)
	for _, o := range c.Observers {
		if o.Enabled {
			observers[o.Type] = append(observers[o.Type], o)
		}
	}
	types := make([]Type, 0, len(observers))
	for _, name := range slices.Sorted(maps.Keys(observers)) {
		types = append(types, newType(name, c.Scheduler.Types[name], observers[name]))
	}
	shift(types, c.Scheduler.Spread)
	return types
}

// shift distributes the types of one interval evenly over the spread, in the order of
// their names. Types that are switched off on this node keep their place, so
// that nodes agree as long as their files name the same types.
func shift(types []Type, spread time.Duration) {
	peers := make(map[time.Duration][]*Type)
	for i, t := range types {
		peers[t.Interval] = append(peers[t.Interval], &types[i])
	}
	for _, same := range peers {
		for i, t := range same {
			t.Shift = (spread * time.Duration(i) / time.Duration(len(same))).Truncate(time.Millisecond)
		}
	}
}

func newType(name string, s Settings, observers []Observer) Type {
	return Type{
		Name:       name,
		Enabled:    s.Enabled,
		Interval:   s.FixedDelay,
		NotBetween: mustWindow(s.NotBetween),
		TTL:        s.Lock.TTL,
		Wait:       s.Lock.Wait,
		Region:     s.Lock.Region,
		KeyFormat:  s.Lock.KeyFormat,
		LockName:   name + "-observer-poll",
		Observers:  observers,
	}
}
