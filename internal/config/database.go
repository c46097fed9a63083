package config

import (
	"maps"
	"slices"
	"time"
	_ "time/tzdata" // So that zones are known on hosts and in images without them.

	"github.com/observerd/observerd/internal/config/dburl"
)

// URL is the address of a database.
type URL = dburl.URL

// The databases that can coordinate.
const (
	SQLite   = dburl.SQLite
	Postgres = dburl.Postgres
)

// Database is the coordination database.
type Database struct {
	// URL is sqlite:PATH or postgres://…; a relative PATH starts at the
	// working directory of the process. Default: sqlite:var/observerd.db.
	URL URL `key:"url" default:"sqlite:var/observerd.db" unit:"URL"`
	// URLFile is a file that holds the URL, read when the configuration is
	// loaded. It replaces URL. Default: none.
	URLFile string `key:"url-file" unit:"file name"`
	// PoolSize bounds the connections of this process for everything but
	// leases, which have their own. Default: 8.
	PoolSize int `key:"pool-size" default:"8" min:"2" max:"200" unit:"connections"`
	// AutoMigrate lets run bring the schema up to date. With false a node
	// waits, not ready, for `observerd migrate up`. Default: true.
	AutoMigrate bool `key:"auto-migrate" default:"true"`
	// Retention bounds the history tables.
	Retention Retention `key:"retention"`
	// JanitorInterval is the distance between the janitor's rounds, of which
	// the cluster makes one at a time. Default: 10 minutes.
	JanitorInterval time.Duration `key:"janitor-interval" default:"10m" min:"1s"`
}

// Retention is the age at which the janitor removes what is in a history
// table. What observers still need to recognise a row is never removed.
type Retention struct {
	// Events are those that every sink has stored. Default: 7 days.
	Events time.Duration `key:"events" default:"168h" min:"1s"`
	// Polls is the history of polls. Default: 3 days.
	Polls time.Duration `key:"polls" default:"72h" min:"1s"`
	// Audit is what operators did. Default: 365 days.
	Audit time.Duration `key:"audit" default:"8760h" min:"1s"`
	// Dead are the values of poison rows. Default: 30 days.
	Dead time.Duration `key:"dead" default:"720h" min:"1s"`
	// Nodes are processes that were not seen since. Default: 1 day.
	Nodes time.Duration `key:"nodes" default:"24h" min:"1m"`
	// StaleLocks are locks of ours that have been expired since. Default:
	// 1 day.
	StaleLocks time.Duration `key:"stale-locks" default:"24h" min:"1m"`
}

// Source is a database that is read and never written.
type Source struct {
	// URL is sqlite:PATH, or postgres, oracle, mysql or mariadb://… This or
	// URLFile is required.
	URL URL `key:"url" shown:"this or url-file is required" unit:"URL"`
	// URLFile is a file that holds the URL, read when the configuration is
	// loaded, or by [Source.Resolve] later. Default: none.
	URLFile string `key:"url-file" unit:"file name"`
	// PasswordFile is a file that holds the password, any characters, read
	// as URLFile is. It replaces the one in the URL. Default: none.
	PasswordFile string `key:"password-file" unit:"file name"`
	// Timezone is the IANA name of the zone of the source's timestamps that
	// have none of their own. Default: UTC.
	Timezone string `key:"timezone" default:"UTC" unit:"IANA time zone"`
	// PoolSize bounds the connections of this process. Default: 2.
	PoolSize int `key:"pool-size" default:"2" min:"2" max:"4" unit:"connections"`
	// FetchSize is how many rows one round trip brings, where the database
	// sends them on request. Default: 1000.
	FetchSize int `key:"fetch-size" default:"1000" min:"1" max:"100000" unit:"rows"`
	// QueryTimeout bounds each small statement, and how long the database may
	// send nothing while rows are read. Default: 1 minute.
	QueryTimeout time.Duration `key:"query-timeout" default:"1m" min:"1s"`
	// resolve reads the files again of which one could not be read when the
	// configuration was loaded; nil: URL is whole.
	resolve func() (URL, error)
}

// IsWhole reports whether URL has all that the files of the source hold. Where it
// has not, it is none, or lacks the password: then [Source.Resolve] is to be
// called before a connection is made.
func (s Source) IsWhole() bool { return s.resolve == nil }

// Resolve returns the source with its whole URL. A file that could not be read when
// the configuration was loaded is read now. The error is an [*Error]: [ErrUnread]
// while there is still such a file, and a mistake when it holds no URL or password.
func (s Source) Resolve() (Source, error) {
	if s.IsWhole() {
		return s, nil
	}
	url, err := s.resolve()
	if err != nil {
		return s, err
	}
	s.URL, s.resolve = url, nil
	return s, nil
}

// Location is the zone named by Timezone. It was checked by [Load]; of a
// Source made otherwise an unknown zone is UTC.
func (s Source) Location() *time.Location {
	zone, err := time.LoadLocation(s.Timezone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// checkSources checks the section sources, and resolves its URLs.
func (l *loader) checkSources(sources map[string]Source) {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		path, s := join("sources", name), sources[name]
		s.URL, s.resolve = l.sourceURL(path)
		sources[name] = s
		dialect, size := string(s.URL.Dialect()), join(path, "fetch-size")
		if kind, _ := l.options.Kinds.Servers.Of(dialect); l.IsSet(size) && !s.URL.IsZero() && !kind.Fetches {
			l.Warn(size, "fetch-size has no effect on "+dialect+", which streams its rows; remove it")
		}
		if _, why := parseZone(s.Timezone); why != "" {
			l.Reject(join(path, "timezone"), why)
		}
	}
}
