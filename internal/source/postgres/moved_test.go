package postgres_test

import (
	"errors"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestSessionsWithAFormerServer gives the address of a source to another server while a read of
// the former one goes on, which stays reachable for those that are connected.
func TestSessionsWithAFormerServer(t *testing.T) {
	t.Parallel()
	former, later := pgtest.Start(t, pgtest.Options{}), pgtest.Start(t, pgtest.Options{})
	for server, row := range map[*pgtest.Server]string{former: "1", later: "2"} {
		exec(t, connect(t, server.URL("postgres")), "CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES ("+row+")")
	}
	url, proxy := netfault.StartBefore(t, former.URL("postgres"))
	s := open(t, postgres.Options{URL: url, PoolSize: 2})
	q := observer.Query{Table: "orders", Key: []string{"id"}}
	before, err := s.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reading, err := s.Read(t.Context(), q, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	proxy.Move(later.Address())
	h, err := s.Horizon(t.Context(), q)
	if err != nil || h.Identity == before {
		t.Fatalf("identity %q, then %q: %v", before, h.Identity, err)
	}
	for reading.Next() {
	}
	if err := errors.Join(reading.Err(), reading.Close()); err != nil {
		t.Errorf("the read that had begun: %v", err)
	}
	if rows := sourcetest.ReadAll(t, s, q, observer.Range{}); len(rows) != 1 || rows[0].Key != "2" {
		t.Errorf("rows %+v of the former server are read as those of the later one", rows)
	}
}
