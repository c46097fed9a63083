package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/observerd/observerd/internal/config/yamlfile"
	"github.com/observerd/observerd/internal/nearest"
)

// observerChecker checks the section observers, and fills in what depends on the type.
type observerChecker struct{ resolver }

func (c observerChecker) checkObservers(cfg *Config) {
	ids := make(map[string]string)
	for i := range cfg.Observers {
		path, o := fmt.Sprintf("observers[%d]", i), &cfg.Observers[i]
		if !c.OK(path) {
			continue // It is no section at all.
		}
		checkName(c.Report, path+".id", o.ID)
		checkUnique(c.Report, ids, o.ID, path+".id", "an observer "+quote(o.ID))
		checkName(c.Report, path+".type", o.Type)
		c.checkSource(path, o.Source, cfg.Sources)
		c.checkQuery(path, o)
		c.checkColumns(path, o)
		c.checkRedact(path, o)
		c.presets(path, o)
		c.checkDetection(path, o)
		c.checkStart(path, o)
		c.checkReconcile(path, o)
		c.checkFreshness(path, o, max(cfg.Scheduler.Types[o.Type].FixedDelay, o.FixedDelay))
		c.checkTimes(path, o, cfg.Scheduler)
	}
	if len(cfg.Observers) == 0 && c.OK("observers") {
		c.Warn("observers", "there are no observers, so nothing will be polled; add some below observers")
	}
}

// checkFreshness warns of an objective that is missed before each poll.
func (c observerChecker) checkFreshness(path string, o *Observer, interval time.Duration) {
	key, least := path+".freshness-objective", interval
	if o.Overlap != nil {
		least += *o.Overlap
	}
	if objective := o.FreshnessObjective; objective != nil && *objective > 0 && *objective <= least && c.OK(key, path+".type", path+".overlap") {
		c.Warn(key, fmt.Sprintf("an objective of %s is missed before each poll, as fixed-delay and overlap are %s; use %s or more, or 0 for none",
			short(*objective), short(least), short(2*least)))
	}
}

func (c observerChecker) checkSource(path, source string, sources map[string]Source) {
	key := path + ".source"
	if _, ok := sources[source]; ok || !c.OK(key, "sources", join("sources", source)) {
		return
	}
	known := slices.Sorted(maps.Keys(sources))
	if len(known) == 0 {
		c.Reject(key, "there is no source; add one below sources")
		return
	}
	c.Reject(key, "there is no source "+quote(source)+"; "+nearest.Suggest(source, known))
}

func (c observerChecker) checkQuery(path string, o *Observer) {
	table, query := path+".table", path+".query"
	hasTable, hasQuery := c.IsSet(table), c.IsSet(query)
	switch {
	case hasTable && hasQuery:
		c.Reject(query, "table is set as well; remove one of them")
	case hasTable:
		parts := strings.Split(o.Table, ".")
		if len(parts) > 2 {
			c.Reject(table, quote(o.Table)+" has too many parts; use TABLE or SCHEMA.TABLE")
		}
		for _, part := range parts {
			c.checkIdentifier(table, part)
		}
	case hasQuery && strings.TrimSpace(o.Query) == "":
		c.Reject(query, "query is empty; use a SELECT")
	case !hasQuery:
		c.Reject(path+".table", "table is missing; set table or query")
	}
}

// checkIdentifier accepts every name that can be quoted: the source decides whether
// it exists.
func (c observerChecker) checkIdentifier(key, identifier string) {
	switch {
	case identifier == "":
		c.Reject(key, "a name is empty; use the name of a table or column")
	case strings.TrimSpace(identifier) != identifier || strings.ContainsFunc(identifier, unicode.IsControl):
		c.Reject(key, quote(identifier)+" has blanks around it or control characters in it; remove them")
	case len(identifier) > 128:
		c.Reject(key, quote(identifier)+" is longer than 128 bytes; use the name of a table or column")
	}
}

func (c observerChecker) checkColumns(path string, o *Observer) {
	if key := path + ".key"; !c.IsSet(key) && c.IsSet(path+".query") && c.OK(key) {
		c.Reject(key, "key is missing, and a query has no primary key; use the columns that no two of its rows share")
	}
	c.checkNames(path+".key", o.Key)
	c.checkNames(path+".columns", o.Columns)
	if c.IsSet(path + ".timestamp") {
		c.checkIdentifier(path+".timestamp", o.Timestamp)
	}
}

func (c observerChecker) checkNames(key string, columns []string) {
	if c.IsSet(key) && len(columns) == 0 {
		c.Reject(key, yamlfile.LastKey(key)+" names no column; use at least one, or remove the key")
	}
	for i, column := range columns {
		at := fmt.Sprintf("%s[%d]", key, i)
		c.checkIdentifier(at, column)
		if slices.Contains(columns[:i], column) {
			c.Reject(at, quote(column)+" is there twice; remove one")
		}
	}
}
