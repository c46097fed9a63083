package config

import (
	"time"

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
