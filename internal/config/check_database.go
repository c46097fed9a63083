package config

import (
	"maps"
	"slices"
)

// databaseChecker checks the sections database and sources, and resolves their URLs.
type databaseChecker struct{ resolver }

func (c databaseChecker) checkDatabase(d *Database) {
	if u, ok := c.resolveURL("database", c.options.Kinds.Servers.ParseCoordination); ok {
		d.URL = u
		c.checkFileSystem(c.urlKey("database"), u)
	}
}

func (c databaseChecker) checkSources(sources map[string]Source) {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		path, s := join("sources", name), sources[name]
		s.URL, s.resolve = c.sourceURL(path)
		sources[name] = s
		c.checkFetchSize(join(path, "fetch-size"), s.URL)
		key := join(path, "timezone")
		if _, why := parseZone(s.Timezone); why != "" {
			c.Reject(key, why)
		}
	}
}

// checkFetchSize warns where a driver has no use for it: it streams.
func (c databaseChecker) checkFetchSize(key string, u URL) {
	kind, _ := c.options.Kinds.Servers.Of(string(u.Dialect()))
	if c.IsSet(key) && !u.IsZero() && !kind.Fetches {
		c.Warn(key, "fetch-size has no effect on "+string(u.Dialect())+", which streams its rows; remove it")
	}
}
