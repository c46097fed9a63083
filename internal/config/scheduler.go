package config

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/config/yamlfile"
	"github.com/observerd/observerd/internal/fn"
)

// Scheduler says when the observers of a type are polled.
type Scheduler struct {
	// Shared holds for all types. Its Enabled is the switch of the node:
	// false leaves it healthy and ready, but it takes no lock and no turn.
	Shared `key:"observer"`
	// Types has the settings of each type: the built-in ones and those that
	// an observer uses. What a type does not set is taken from Shared, except
	// Enabled.
	Types map[string]Settings `key:"<type>-observer"`
}

// Shared are the settings for all types, and those that only exist once.
type Shared struct {
	Settings
	// ShutdownTimeout is how long a poll may take to finish its chunk when
	// the process is asked to stop. Default: 20 s.
	ShutdownTimeout time.Duration `key:"shutdown-timeout" default:"20s" min:"1s"`
	// Spread is the time within which the types of one fixed-delay follow each
	// other, evenly, in place of all at one tick; at most half of the
	// shortest fixed-delay. Default: 0, all at one tick.
	Spread time.Duration `key:"spread" default:"0s"`
	// Concurrency is how many observers of one type run side by side.
	// Default: 8.
	Concurrency int `key:"concurrency" default:"8" min:"1" max:"100" unit:"observers"`
}

// Settings may differ by type.
type Settings struct {
	// Enabled is the switch of the type on this node. Default: true.
	Enabled bool `key:"enabled" default:"true"`
	// FixedDelay is the distance between the STARTS of a type's polls, for
	// the whole cluster. The name is that of the system this replaces, where
	// the distance ran from the end of a poll. Default: 30 s.
	FixedDelay time.Duration `key:"fixed-delay" default:"30s" min:"1s"`
	// NotBetween is a time of day in which no poll of the type begins, with its
	// time zone: 22:00-06:00 Europe/Berlin. Default: empty, none.
	NotBetween string `key:"not-between" unit:"HH:MM-HH:MM ZONE"`
	// Shards is in how many parts the observers of the type are divided, each with a lock and
	// turns of its own, so that as many nodes poll it at a time. Default: 1.
	Shards int `key:"shards" default:"1" min:"1" max:"100" unit:"shards"`
	// Lock is the lock under which the type is polled.
	Lock Lock `key:"lock"`
}

// Lock is how the lock of a type is taken.
type Lock struct {
	// TTL is how long the lock outlives its last renewal. At least 3 s on
	// PostgreSQL and 15 s on SQLite. Default: 60 s.
	TTL time.Duration `key:"ttl" default:"60s"`
	// Wait is how long another holder is waited for closely, with a look at
	// least twice a second; then, and with 0 at once, looks come at growing
	// distances. Default: 1 s.
	Wait time.Duration `key:"wait" default:"1s"`
	// Region separates applications that share the lock table, at most 100
	// characters. Default: DEFAULT.
	Region string `key:"region" default:"DEFAULT" unit:"text"`
	// KeyFormat is plain (the lock's name as it is) or spring (hashed as
	// Spring Integration does, to share locks with Java nodes).
	// Default: plain.
	KeyFormat string `key:"key-format" default:"plain" oneof:"plain|spring"`
}

// Type is an observer type that has at least one enabled observer, or a shard of one, with
// its effective settings.
type Type struct {
	// Name is that of the type, or of the shard, see [Config.ShardOf].
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
	// Lock is that of its settings.
	Lock
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

// ShardOf returns the name of the shard that an observer belongs to, "order#2" or, of a type
// with one shard, that of the type. It depends on the id of the observer and the number of shards
// alone, so that nodes agree and other observers leave it where it is.
func (c *Config) ShardOf(o Observer) string {
	n := c.Scheduler.Types[o.Type].Shards
	if n < 2 {
		return o.Type
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(o.ID))
	return o.Type + shardMark + strconv.FormatInt(1+int64(h.Sum32())%int64(n), 10)
}

// shardMark is in no name of a type.
const shardMark = "#"

// OfShard returns the type of a shard.
func OfShard(name string) (typ string) {
	typ, _, _ = strings.Cut(name, shardMark)
	return typ
}

// Types returns the types that have work, or their shards, sorted by name.
func (c *Config) Types() []Type {
	enabled := fn.Only(c.Observers, func(o Observer) bool { return o.Enabled })
	observers := fn.Group(enabled, func(o Observer) (string, Observer) { return c.ShardOf(o), o })
	types := make([]Type, 0, len(observers))
	for _, name := range slices.Sorted(maps.Keys(observers)) {
		typ := OfShard(name)
		s := c.Scheduler.Types[typ]
		types = append(types, Type{
			Name:       name,
			Enabled:    s.Enabled,
			Interval:   s.FixedDelay,
			NotBetween: mustWindow(s.NotBetween),
			Lock:       s.Lock,
			LockName:   typ + "-observer-poll" + name[len(typ):],
			Observers:  observers[name],
		})
	}
	shift(types, c.Scheduler.Spread)
	return types
}

// Polled returns the types that are not switched off, and how many observers they have.
func (c *Config) Polled() (types []Type, observers int) {
	for _, t := range c.Types() {
		if t.Enabled {
			types = append(types, t)
			observers += len(t.Observers)
		}
	}
	return types, observers
}

// shift distributes the types of one interval evenly over the spread, in the order of
// their names. Types that are switched off on this node keep their place, so
// that nodes agree as long as their files name the same types.
func shift(types []Type, spread time.Duration) {
	peers := fn.Group(fn.Indexes(len(types)), func(i int) (time.Duration, *Type) { return types[i].Interval, &types[i] })
	for _, same := range peers {
		for i, t := range same {
			t.Shift = (spread * time.Duration(i) / time.Duration(len(same))).Truncate(time.Millisecond)
		}
	}
}

// schedulerChecker checks the section scheduler.
type schedulerChecker struct{ *yamlfile.Report }

func (c schedulerChecker) checkScheduler(cfg *Config) {
	c.checkSettings("scheduler.observer", cfg.Scheduler.Settings, cfg.Database.URL)
	for _, name := range slices.Sorted(maps.Keys(cfg.Scheduler.Types)) {
		c.checkSettings("scheduler."+name+"-observer", cfg.Scheduler.Types[name], cfg.Database.URL)
	}
	c.checkSpread(cfg.Scheduler.Spread, cfg.Types())
}

// checkSpread keeps half of each interval free: for the line of nodes at a
// turn, and for the polls of the last type before the next tick.
func (c schedulerChecker) checkSpread(spread time.Duration, types []Type) {
	const key = "scheduler.observer.spread"
	if len(types) == 0 {
		return
	}
	shortest := slices.MinFunc(types, func(a, b Type) int { return cmp.Compare(a.Interval, b.Interval) })
	most, typ := shortest.Interval/2, OfShard(shortest.Name)
	if !c.OK(key, "scheduler.observer.fixed-delay", "scheduler."+typ+"-observer.fixed-delay") || spread <= most {
		return
	}
	c.Reject(key, fmt.Sprintf("a spread of %s is more than half of the shortest fixed-delay (%s, of %s); use %s or less",
		short(spread), short(shortest.Interval), typ, short(most)))
}

// checkSettings checks the keys that are set at this path. Those that a type inherits
// are checked where they were set.
func (c schedulerChecker) checkSettings(path string, s Settings, database URL) {
	ttl, delay, region := path+".lock.ttl", path+".fixed-delay", path+".lock.region"
	if least, kind := leastTTL(database); c.IsSet(ttl) && c.OK(ttl) && s.Lock.TTL < least {
		c.Reject(ttl, fmt.Sprintf("a TTL of %s is too short for %s; use %s or more", short(s.Lock.TTL), kind, short(least)))
	}
	if c.IsSet(region) {
		if s.Lock.Region == "" {
			c.Reject(region, "region is empty; use DEFAULT")
		}
		checkLabel(c.Report, region, s.Lock.Region)
	}
	if c.IsSet(delay) && c.OK(delay) && s.FixedDelay%time.Millisecond != 0 { // Turns have no finer times.
		c.Reject(delay, fmt.Sprintf("%s is not a whole number of milliseconds; use %s", s.FixedDelay, s.FixedDelay.Truncate(time.Millisecond)))
	}
	if window := path + ".not-between"; c.IsSet(window) && c.OK(window) {
		if _, why := parseWindow(s.NotBetween); why != "" {
			c.Reject(window, why)
		}
	}
	if c.IsSet(ttl) || c.IsSet(delay) {
		c.warnShortTTL(ttl, delay, s)
	}
}

// leastTTL leaves room for a heartbeat every third of it: a commit of another
// may block SQLite for seconds.
func leastTTL(database URL) (time.Duration, string) {
	switch database.Dialect() {
	case SQLite:
		return 15 * time.Second, "SQLite"
	case Postgres:
		return 3 * time.Second, "PostgreSQL"
	}
	return 0, ""
}

func (c schedulerChecker) warnShortTTL(ttl, delay string, s Settings) {
	if !c.OK(ttl, delay) || s.Lock.TTL >= s.FixedDelay {
		return
	}
	key := ttl
	if c.LayerOf(ttl) < c.LayerOf(delay) {
		key = delay
	}
	c.Warn(key, fmt.Sprintf("lock.ttl (%s) is shorter than fixed-delay (%s): a node that stalls loses its lock before the next turn; "+
		"use a TTL of %s or more", short(s.Lock.TTL), short(s.FixedDelay), short(s.FixedDelay)))
}
