package postgres_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// A background worker writes as clients do, but shows the type that its
// extension gave it. Here it is one that applies what is replicated, and waits
// in its transaction for somebody who has none. A trigger makes rows of our own
// of that, which have the time of this transaction.
func TestHorizonWaitsForBackgroundWorkers(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"wal_level": "logical"}})
	published, url := server.URL("postgres"), server.URL("copy")
	publisher := connect(t, published)
	exec(t, publisher, "CREATE DATABASE copy")
	exec(t, publisher, "CREATE TABLE arrivals (id int PRIMARY KEY); CREATE PUBLICATION news FOR TABLE arrivals")
	exec(t, publisher, "SELECT pg_create_logical_replication_slot('copy', 'pgoutput')")
	owner := connect(t, url)
	exec(t, owner, eventsTable+`;
		CREATE TABLE arrivals (id int PRIMARY KEY);
		CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN PERFORM pg_advisory_xact_lock(1); INSERT INTO public.events VALUES (NEW.id, now()); RETURN NEW; END';
		CREATE TRIGGER wait BEFORE INSERT ON arrivals FOR EACH ROW EXECUTE FUNCTION wait();
		ALTER TABLE arrivals ENABLE ALWAYS TRIGGER wait`)
	exec(t, owner, "SELECT pg_advisory_lock(1)")
	exec(t, owner, fmt.Sprintf("CREATE SUBSCRIPTION copy CONNECTION '%s' PUBLICATION news WITH (create_slot = false, copy_data = false)", published))
	exec(t, publisher, "INSERT INTO arrivals VALUES (1)")
	waitForWorker(t, owner)
	exec(t, owner, "SELECT pg_sleep(0.2)")

	s := open(t, postgres.Options{URL: url})
	h := horizon(t, s, events())
	if !h.Exact || h.Lag < 1200*time.Millisecond {
		t.Errorf("horizon = %+v beside a worker's transaction, want it before that", h)
	}
	exec(t, owner, "SELECT pg_advisory_unlock(1)")
	waittest.Eventually(t, time.Minute, func() error {
		if rows := sourcetest.ReadAll(t, s, events(), observer.Range{From: h.Cursor}); len(rows) != 1 {
			return fmt.Errorf("%d rows from the horizon %s on, want the worker's", len(rows), h.Cursor)
		}
		return nil
	})
}

func waitForWorker(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	waittest.Eventually(t, time.Minute, func() error {
		rows, err := conn.Query(t.Context(), "SELECT backend_type FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND wait_event = 'advisory'")
		if err != nil {
			t.Fatal(err)
		}
		types, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if len(types) == 0 {
			return errors.New("no worker waits in its transaction")
		}
		t.Logf("a %s waits", types[0])
		return nil
	})
}
