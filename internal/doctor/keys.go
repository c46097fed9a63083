package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/status"
)

// names returns the known names of locks: those of the configuration, and those that
// nodes of observerd have stored.
func (x *input) names() []string {
	all := fn.Each(x.want.Locks, func(l Lock) string { return l.Name })
	all = append(all, fn.Each(x.Acquired, func(a status.Acquisition) string { return a.Name })...)
	return fn.Distinct(all)
}

// nameOf finds the name and the format behind a key; empty: unknown.
func (x *input) nameOf(key string) (name string, format lockdb.KeyFormat) {
	for _, name := range x.names() {
		for _, format := range []lockdb.KeyFormat{lockdb.KeyPlain, lockdb.KeySpring} {
			if lockdb.Key(format, name) == key {
				return name, format
			}
		}
	}
	return "", ""
}

// lock describes the lock of a row.
func (x *input) lock(s status.Sighting) string {
	name, _ := x.nameOf(s.Key)
	if name == "" || name == s.Key {
		return fmt.Sprintf("lock %s (region %s)", s.Key, s.Region)
	}
	return fmt.Sprintf("lock %s (key %s, region %s)", name, s.Key, s.Region)
}

// wanted finds the lock of the configuration that has this row.
func (x *input) wanted(key, region string) (Lock, bool) {
	return fn.Find(x.want.Locks, func(l Lock) bool { return l.Key() == key && l.Region == region })
}

// ttlOf returns the TTL of a row: its own where a node of observerd wrote it, the
// configuration's otherwise.
func (x *input) ttlOf(s status.Sighting) time.Duration {
	if s.Ours {
		return s.TTL
	}
	if l, ok := x.wanted(s.Key, s.Region); ok {
		return l.TTL
	}
	return x.want.TTL
}

func ours(s status.Sighting) bool { return s.Ours }

// foreign returns the sightings of holders that are not nodes of observerd.
func (x *input) foreign() []status.Sighting {
	return slices.DeleteFunc(slices.Clone(x.Sightings), ours)
}

// foreignHolders returns one sighting of each lock and such holder.
func (x *input) foreignHolders() []status.Sighting {
	return slices.DeleteFunc(x.worst(func(status.Sighting) time.Duration { return 0 }), ours)
}

// holders reports the holders that are not nodes of observerd.
func holders(x *input, f *findings) {
	foreign := x.foreign()
	for _, s := range x.foreignHolders() {
		if x.Table.Has(expiredAfter) && s.Expires.IsZero() {
			f.add(Problem, fmt.Sprintf("%s: the row of holder %s has no EXPIRED_AFTER", x.lock(s), s.Term),
				"A node of "+springSix+" wrote it, on a table of "+springSeven+". The two do not exclude each other.", "Upgrade or stop the nodes of "+springSix+"; remove the row: "+removal(s))
		}
		if _, err := uuid.Parse(s.Term); err != nil {
			f.add(Warning, fmt.Sprintf("%s: the client id of its holder is %q, no UUID", x.lock(s), s.Term),
				"It was set by hand. A lock of Spring is re-entrant for its client id: where two nodes have the same one, both hold the lock.",
				"Leave the id to Spring (DefaultLockRepository(dataSource)), or make sure that each node has its own.")
		}
	}
	if len(foreign) == 0 {
		f.fine("no holder but nodes of observerd was seen (%s)", x.watched())
		return
	}
	terms, locks, writes := map[string]bool{}, map[string]bool{}, 0
	for _, s := range foreign {
		terms[s.Term], locks[x.lock(s)] = true, true
		if s.Written {
			writes++
		}
	}
	f.add(Note, fmt.Sprintf("%s held %s, and wrote %s %s: %s", status.Plural(len(terms), "foreign client id", "foreign client ids"),
		status.Plural(len(locks), "lock", "locks"), status.Plural(writes, "time", "times"), x.watched(), list(locks)),
		"Rows that no node of ours wrote: Java nodes (Spring Integration) work on this table, or did.", "")
}

func list(set map[string]bool) string {
	const most = 5
	all := slices.Sorted(maps.Keys(set))
	if len(all) > most {
		all = append(all[:most], fmt.Sprintf("%d more", len(all)-most))
	}
	return strings.Join(all, "; ")
}

// keys checks that all nodes use the same row for the same lock.
func keys(x *input, f *findings) {
	x.twoFormats(f)
	for _, s := range x.foreignHolders() {
		name, format := x.nameOf(s.Key)
		for _, l := range x.want.Locks {
			switch {
			case l.Name != name:
			case l.Key() != s.Key:
				f.add(Problem, fmt.Sprintf("a Java node holds %s under the key %s; this configuration says key-format: %s, and so %s", name, s.Key, l.KeyFormat, l.Key()),
					"They lock different rows and do not exclude each other: both poll at once.", fmt.Sprintf("Write scheduler.observer.lock.key-format: %s.", format))
			case l.Region != s.Region:
				f.add(Problem, fmt.Sprintf("a Java node holds %s in the region %s; this configuration says region: %s", name, s.Region, l.Region),
					"They lock different rows and do not exclude each other: both poll at once.", fmt.Sprintf("Write scheduler.observer.lock.region: %s.", s.Region))
			}
		}
	}
	f.fine("every lock has one key: no other format and no other region was seen for the locks of this configuration")
}

// twoFormats finds locks that nodes of observerd take under both keys.
func (x *input) twoFormats(f *findings) {
	for _, name := range x.names() {
		plain, spring := lockdb.Key(lockdb.KeyPlain, name), lockdb.Key(lockdb.KeySpring, name)
		if plain == spring {
			continue
		}
		p, byPlain := x.acquired(plain)
		s, bySpring := x.acquired(spring)
		if !byPlain || !bySpring {
			continue
		}
		last := max(x.At.Sub(p.At), x.At.Sub(s.At))
		saw := fmt.Sprintf("%s was taken under both keys: plain by %s %s ago, spring by %s %s ago", name, p.Node, words(x.At.Sub(p.At)), s.Node, words(x.At.Sub(s.At)))
		if last > status.Fresh*x.interval(name) {
			f.add(Note, saw, "The key-format was changed.", "Nothing, if no node with the former one is left.")
			continue
		}
		f.add(Problem, saw, "key-format differs between nodes: they lock different rows, and both poll the type. The fence keeps the events right, but the sources are read twice and the nodes disturb each other.",
			"Give all nodes the same scheduler.observer.lock.key-format; spring while Java nodes work beside them.")
	}
}

func (x *input) acquired(key string) (status.Acquisition, bool) {
	return fn.Find(x.Acquired, func(a status.Acquisition) bool { return a.Key == key })
}

// interval returns how often a lock is taken, as far as it is known.
func (x *input) interval(name string) time.Duration {
	l, _ := fn.Find(x.want.Locks, func(l Lock) bool { return l.Name == name && l.Interval > 0 })
	return cmp.Or(l.Interval, time.Minute)
}
