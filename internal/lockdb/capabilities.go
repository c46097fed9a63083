package lockdb

import (
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// The shortest TTLs that are kept: another process may block SQLite for seconds, and a
// renewal with it.
const (
	minTTLSQLite   = 15 * time.Second
	minTTLPostgres = time.Second
)

// Capabilities implements [lock.Provider].
func (l *Leases) Capabilities() lock.Capabilities { return l.capabilities(l.db.Backend()) }

// Kinds returns what the locks of each backend have, for people: none is connected.
func Kinds() []lock.Capabilities {
	var none *Leases
	return []lock.Capabilities{none.capabilities("postgres"), none.capabilities("sqlite")}
}

func (l *Leases) capabilities(backend string) lock.Capabilities {
	c := lock.Capabilities{
		Name:         backend,
		Modes:        true,
		MinTTL:       minTTLPostgres,
		MostAttempts: sqldb.AcquireConns,
		Sets:         l,
		Extender:     l,
		Guard:        l,
		Line:         l,
		Finder:       l,
		Stealer:      l,
		Delayer:      l,
		FailureLog:   l,
	}
	if backend == "sqlite" {
		c.MinTTL, c.MostAttempts = minTTLSQLite, 1
	}
	return c
}
