package lockdb

import (
	"database/sql"
	"testing"
	"time"
)

// Occupied reports whether a call has the connection that writes to the file.
func (db *DB) Occupied() bool { return db.db.Main.Stats().InUse > 0 }

// Occupy takes the connection that writes to the file, until release.
func (db *DB) Occupy(t *testing.T) (release func()) {
	t.Helper()
	conn, err := db.db.Main.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// OccupyAcquire takes all connections for acquisitions, until release.
func (db *DB) OccupyAcquire(t *testing.T) (release func()) {
	t.Helper()
	conns := make([]*sql.Conn, db.db.Acquire.Stats().MaxOpenConnections)
	for i := range conns {
		var err error
		if conns[i], err = db.db.Acquire.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for _, conn := range conns {
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// OnEncode sets a function that is called for each time that is encoded. Call it
// before anything is.
func (db *DB) OnEncode(f func()) {
	bind := db.db.TimeArg
	db.db.TimeArg = func(t time.Time) any {
		f()
		return bind(t)
	}
}
