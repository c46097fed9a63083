package oracle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/oratest/engine"
)

// TestSessionsWithAFormerServer gives the address of a source to another server while a read of
// the former one goes on, which stays reachable for those that are connected.
func TestSessionsWithAFormerServer(t *testing.T) {
	t.Parallel()
	former, later := emulate(t, engine.Options{}), emulate(t, engine.Options{})
	former.exec(eventsTable, "INSERT INTO events VALUES (1, TIMESTAMP '2024-05-01 10:00:00')")
	later.exec(eventsTable, "INSERT INTO events VALUES (2, TIMESTAMP '2024-05-01 10:00:00')")
	other := later.engine.Database()
	other.DBID++
	later.engine.SetDatabase(other)
	proxy := netfault.Start(t, former.server.Addr())
	s := open(t, oracle.Options{URL: strings.Replace(former.url("app"), former.server.Addr(), proxy.Addr(), 1), PoolSize: 2})
	before, err := s.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reading, err := s.Read(t.Context(), events(), observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	proxy.Move(later.server.Addr())
	if h := horizon(t, s, events()); h.Identity == before {
		t.Fatalf("identity %q of both", before)
	}
	for reading.Next() {
	}
	if err := errors.Join(reading.Err(), reading.Close()); err != nil {
		t.Errorf("the read that had begun: %v", err)
	}
	if rows := sourcetest.ReadAll(t, s, events(), observer.Range{}); len(rows) != 1 || rows[0].Key != "2" {
		t.Errorf("rows %+v of the former server are read as those of the later one", rows)
	}
}
