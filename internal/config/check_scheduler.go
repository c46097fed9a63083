package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

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
	most := shortest.Interval / 2
	if !c.OK(key, "scheduler.observer.fixed-delay", "scheduler."+shortest.Name+"-observer.fixed-delay") || spread <= most {
		return
	}
	c.Reject(key, fmt.Sprintf("a spread of %s is more than half of the shortest fixed-delay (%s, of %s); write %s or less",
		short(spread), short(shortest.Interval), shortest.Name, short(most)))
}

// checkSettings checks the keys that are set at this path. Those that a type inherits
// are checked where they were set.
func (c schedulerChecker) checkSettings(path string, s Settings, database URL) {
	ttl, delay, region := path+".lock.ttl", path+".fixed-delay", path+".lock.region"
	if c.IsSet(ttl) {
		c.checkTTL(ttl, s.Lock.TTL, database)
	}
	if c.IsSet(region) {
		c.checkRegion(region, s.Lock.Region)
	}
	if c.IsSet(delay) && c.OK(delay) && s.FixedDelay%time.Millisecond != 0 { // Turns have no finer times.
		c.Reject(delay, fmt.Sprintf("%s is no whole number of milliseconds; write %s", s.FixedDelay, s.FixedDelay.Truncate(time.Millisecond)))
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

func (c schedulerChecker) checkTTL(key string, ttl time.Duration, database URL) {
	if least, kind := leastTTL(database); c.OK(key) && ttl < least {
		c.Reject(key, fmt.Sprintf("a TTL of %s is too short for %s; write %s or more", short(ttl), kind, short(least)))
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

func (c schedulerChecker) checkRegion(key, region string) {
	if region == "" {
		c.Reject(key, "region is empty; write DEFAULT")
	}
	checkLabel(c.Report, key, region)
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
		"write a TTL of %s or more", short(s.Lock.TTL), short(s.FixedDelay), short(s.FixedDelay)))
}
