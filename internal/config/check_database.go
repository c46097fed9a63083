package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

func (l *loader) checkDatabase(d *Database) {
	if u, ok := l.resolveURL("database", l.options.Kinds.Servers.ParseCoordination); ok {
		d.URL = u
		l.checkFileSystem(l.urlKey("database"), u)
	}
}

// urlKey is the key that gave a section its URL.
func (l *loader) urlKey(path string) string {
	urlKey, fileKey := join(path, "url"), join(path, "url-file")
	if l.LayerOf(fileKey) > l.LayerOf(urlKey) {
		return fileKey
	}
	return urlKey
}

func (l *loader) checkSources(sources map[string]Source) {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		path, s := join("sources", name), sources[name]
		s.URL, s.resolve = l.sourceURL(path)
		sources[name] = s
		l.checkFetchSize(join(path, "fetch-size"), s.URL)
		key := join(path, "timezone")
		if _, err := time.LoadLocation(s.Timezone); err != nil || s.Timezone == "" || s.Timezone == "Local" {
			l.Reject(key, quote(s.Timezone)+" is not an IANA time zone; write for example UTC or Europe/Berlin")
		}
	}
}

// checkFetchSize warns where a driver has no use for it: it streams.
func (l *loader) checkFetchSize(key string, u URL) {
	kind, _ := l.options.Kinds.Servers.Of(string(u.Dialect()))
	if l.set(key) && !u.IsZero() && !kind.Fetches {
		l.Warn(key, "fetch-size has no effect on "+string(u.Dialect())+", which streams its rows; remove it")
	}
}

// checkFileSystem refuses an SQLite file where the locks of one host mean
// nothing to another: two hosts would write it at once and break it.
func (l *loader) checkFileSystem(key string, u URL) {
	if u.Dialect() != SQLite {
		return
	}
	magic, err := l.options.StatFS(nearestExisting(u.Path()))
	if err != nil {
		return // Not for lack of a file system: opening the file says why.
	}
	switch kind, network := fileSystem(magic); {
	case network:
		l.Reject(key, "the file would be on a network file system ("+kind+
			"), where SQLite loses data; write a path on a local disk, or use PostgreSQL")
	case kind != "":
		l.Warn(key, "the file is on "+kind+", which may be a network file system, where SQLite loses data; "+
			"make sure that it is local")
	}
}

// nearestExisting is the path itself, or the deepest directory above it that
// is there already.
func nearestExisting(path string) string {
	for {
		if _, err := os.Stat(path); err == nil {
			return path
		}
		parent := filepath.Dir(path)
		if parent == path {
			return path
		}
		path = parent
	}
}
