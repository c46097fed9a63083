package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

func (l *loader) checkObservers(cfg *Config) {
	ids := make(map[string]string)
	for i := range cfg.Observers {
		path, o := fmt.Sprintf("observers[%d]", i), &cfg.Observers[i]
		if !l.OK(path) {
			continue // It is no section at all.
		}
		l.checkName(path+".id", o.ID)
		l.checkUnique(ids, o.ID, path+".id", "an observer "+quote(o.ID))
		l.checkName(path+".type", o.Type)
		l.checkSource(path, o.Source, cfg.Sources)
		l.checkQuery(path, o)
		l.checkColumns(path, o)
		l.presets(path, o)
		l.checkDetection(path, o)
		l.checkStart(path, o)
		l.checkReconcile(path, o)
	}
	if len(cfg.Observers) == 0 && l.OK("observers") {
		l.Warn("observers", "there are no observers, so nothing will be polled; write some below observers")
	}
}

func (l *loader) checkSource(path, source string, sources map[string]Source) {
	key := path + ".source"
	if _, ok := sources[source]; ok || !l.OK(key, "sources", join("sources", source)) {
		return
	}
	known := slices.Sorted(maps.Keys(sources))
	if len(known) == 0 {
		l.Reject(key, "there is no source; write one below sources")
		return
	}
	l.Reject(key, "there is no source "+quote(source)+"; "+suggestion(source, known))
}

func (l *loader) checkQuery(path string, o *Observer) {
	table, query := path+".table", path+".query"
	hasTable, hasQuery := l.set(table), l.set(query)
	switch {
	case hasTable && hasQuery:
		l.Reject(query, "table is set as well; remove one of them")
	case hasTable:
		l.checkTable(table, o.Table)
	case hasQuery && strings.TrimSpace(o.Query) == "":
		l.Reject(query, "query is empty; write a SELECT")
	case !hasQuery:
		l.Reject(path+".table", "table is missing; write table or query")
	}
}

// set reports whether some layer has the key; a list's keys come from the file.
func (l *loader) set(key string) bool { return l.LayerOf(key) != yamlfile.FromDefault }

func (l *loader) checkTable(key, table string) {
	parts := strings.Split(table, ".")
	if len(parts) > 2 {
		l.Reject(key, quote(table)+" has too many parts; write TABLE or SCHEMA.TABLE")
	}
	for _, part := range parts {
		l.checkIdentifier(key, part)
	}
}

// checkIdentifier accepts every name that can be quoted: the source decides whether
// it exists.
func (l *loader) checkIdentifier(key, identifier string) {
	switch {
	case identifier == "":
		l.Reject(key, "a name is empty; write the name of a table or column")
	case strings.TrimSpace(identifier) != identifier || strings.ContainsFunc(identifier, unicode.IsControl):
		l.Reject(key, quote(identifier)+" has blanks around it or control characters in it; remove them")
	case len(identifier) > 128:
		l.Reject(key, quote(identifier)+" is longer than 128 bytes; write the name of a table or column")
	}
}

func (l *loader) checkColumns(path string, o *Observer) {
	l.checkNames(path+".key", o.Key)
	l.checkNames(path+".columns", o.Columns)
	if l.set(path + ".timestamp") {
		l.checkIdentifier(path+".timestamp", o.Timestamp)
	}
}

func (l *loader) checkNames(key string, columns []string) {
	if l.set(key) && len(columns) == 0 {
		l.Reject(key, yamlfile.LastKey(key)+" names no column; write at least one, or remove the key")
	}
	for i, column := range columns {
		at := fmt.Sprintf("%s[%d]", key, i)
		l.checkIdentifier(at, column)
		if slices.Contains(columns[:i], column) {
			l.Reject(at, quote(column)+" is there twice; remove one")
		}
	}
}
