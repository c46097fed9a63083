package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

func (l *loader) checkScheduler(cfg *Config) {
	l.checkSettings("scheduler.observer", cfg.Scheduler.Settings, cfg.Database.URL)
	for _, name := range slices.Sorted(maps.Keys(cfg.Scheduler.Types)) {
		l.checkSettings("scheduler."+name+"-observer", cfg.Scheduler.Types[name], cfg.Database.URL)
	}
	l.checkSpread(cfg.Scheduler.Spread, cfg.Types())
}

// checkSpread keeps half of each interval free: for the line of nodes at a
// turn, and for the polls of the last type before the next tick.
func (l *loader) checkSpread(spread time.Duration, types []Type) {
	const key = "scheduler.observer.spread"
	if len(types) == 0 {
		return
	}
	shortest := slices.MinFunc(types, func(a, b Type) int { return cmp.Compare(a.Interval, b.Interval) })
	most := shortest.Interval / 2
	if !l.OK(key, "scheduler.observer.fixed-delay", "scheduler."+shortest.Name+"-observer.fixed-delay") || spread <= most {
		return
	}
	l.Reject(key, fmt.Sprintf("a spread of %s is more than half of the shortest fixed-delay (%s, of %s); write %s or less",
		short(spread), short(shortest.Interval), shortest.Name, short(most)))
}

// checkSettings checks the keys that are set at this path. Those that a type inherits
// are checked where they were set.
func (l *loader) checkSettings(path string, s Settings, database URL) {
	ttl, delay, region := path+".lock.ttl", path+".fixed-delay", path+".lock.region"
	if l.set(ttl) {
		l.checkTTL(ttl, s.Lock.TTL, database)
	}
	if l.set(region) {
		l.checkRegion(region, s.Lock.Region)
	}
	if l.set(ttl) || l.set(delay) {
		l.warnShortTTL(ttl, delay, s)
	}
}

func (l *loader) checkTTL(key string, ttl time.Duration, database URL) {
	if least, kind := leastTTL(database); l.OK(key) && ttl < least {
		l.Reject(key, fmt.Sprintf("a TTL of %s is too short for %s; write %s or more", short(ttl), kind, short(least)))
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

func (l *loader) checkRegion(key, region string) {
	if region == "" {
		l.Reject(key, "region is empty; write DEFAULT")
	}
	l.checkLabel(key, region)
}

func (l *loader) warnShortTTL(ttl, delay string, s Settings) {
	if !l.OK(ttl, delay) || s.Lock.TTL >= s.FixedDelay {
		return
	}
	key := ttl
	if l.LayerOf(ttl) < l.LayerOf(delay) {
		key = delay
	}
	l.Warn(key, fmt.Sprintf("lock.ttl (%s) is shorter than fixed-delay (%s): a node that stalls loses its lock before the next turn; "+
		"write a TTL of %s or more", short(s.Lock.TTL), short(s.FixedDelay), short(s.FixedDelay)))
}
