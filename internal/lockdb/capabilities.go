package lockdb

import (
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// Capabilities implements [lock.Provider].
func (l *Leases) Capabilities() lock.Capabilities {
	c := Capabilities(l.db.Backend())
	c.Guard = l
	return c
}

// Capabilities returns what all locks in a database of the backend have.
func Capabilities(backend string) lock.Capabilities {
	c := lock.Capabilities{Name: backend, MinTTL: time.Second, MostAttempts: sqldb.AcquireConns}
	if backend == "sqlite" {
		// Another process may block the file for seconds, and a renewal with it.
		c.MinTTL, c.MostAttempts = 15*time.Second, 1
	}
	return c
}
