package postgres_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

func events() observer.Query {
	return observer.Query{Stream: "events", Table: "events", Key: []string{"id"}, Timestamp: "at"}
}

func horizon(t *testing.T, s *postgres.Source, q observer.Query) observer.Horizon {
	t.Helper()
	h, err := s.Horizon(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

const eventsTable = `CREATE TABLE events (id int PRIMARY KEY, at timestamptz NOT NULL)`

// A transaction that has only begun counts: what it inserts later carries the
// time of its beginning.
func TestHorizonWaitsForIdleTransaction(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := open(t, postgres.Options{URL: url})
	exec(t, connect(t, url), eventsTable)
	late := connect(t, url)
	exec(t, late, "BEGIN; SELECT 1")
	exec(t, connect(t, url), "INSERT INTO events VALUES (1, clock_timestamp())")
	h := horizon(t, s, events())
	exec(t, late, "INSERT INTO events VALUES (2, now()); COMMIT")
	rows := sourcetest.ReadAll(t, s, events(), observer.Range{From: h.Cursor})
	if !h.Exact || len(rows) != 2 || rows[0].Key != "2" {
		t.Errorf("from the horizon %+v: %+v, want the late row first", h, rows)
	}
}

func TestHorizonIgnoresOurReads(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := open(t, postgres.Options{URL: url})
	exec(t, connect(t, url), eventsTable+`; INSERT INTO events VALUES (1, now())`)
	rows, err := s.Read(t.Context(), events(), observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	exec(t, connect(t, url), "SELECT pg_sleep(0.2)")
	if h := horizon(t, s, events()); !h.Exact || h.Lag != time.Second {
		t.Errorf("horizon = %+v beside our own read, want only the margin behind", h)
	}
	other := connect(t, url)
	exec(t, other, "BEGIN; SELECT pg_sleep(0.2)")
	if h := horizon(t, s, events()); h.Lag < 1200*time.Millisecond {
		t.Errorf("horizon = %+v beside somebody's transaction, want it before that", h)
	}
}

// A transaction that has failed writes nothing any more, and shows no beginning.
func TestHorizonBesideAFailedTransaction(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := open(t, postgres.Options{URL: url})
	exec(t, connect(t, url), eventsTable)
	failed := connect(t, url)
	exec(t, failed, "BEGIN")
	if _, err := failed.Exec(t.Context(), "SELECT 1/0"); err == nil {
		t.Fatal("1/0 is something")
	}
	if h := horizon(t, s, events()); !h.Exact || h.Lag != time.Second {
		t.Errorf("horizon = %+v beside a failed transaction, want only the margin behind", h)
	}
}

func TestHorizonNeedsTheGrant(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	owner := connect(t, url)
	exec(t, owner, eventsTable)
	blind := open(t, postgres.Options{URL: pgtest.NewRole(t, url, "SELECT ON events")})
	if h := horizon(t, blind, events()); h.Exact || h.Lag != time.Minute {
		t.Errorf("horizon = %+v without the grant, want a minute behind", h)
	}
	q := events()
	q.Overlap = 5 * time.Minute
	if h := horizon(t, blind, q); h.Exact || h.Lag != q.Overlap {
		t.Errorf("horizon = %+v without the grant, want the overlap", h)
	}
	if d, err := blind.Describe(t.Context(), events()); err != nil || d.HorizonExact || len(d.Warnings) != 1 {
		t.Errorf("description = %+v, %v, want a warning", d, err)
	}
	seeing := open(t, postgres.Options{URL: pgtest.NewRole(t, url, "SELECT ON events", "pg_read_all_stats")})
	if h := horizon(t, seeing, events()); !h.Exact || h.Lag > 10*time.Second {
		t.Errorf("horizon = %+v with the grant", h)
	}
	exec(t, owner, "SET track_activities = off")
	if h := horizon(t, seeing, events()); h.Exact {
		t.Errorf("horizon = %+v beside a session that does not tell", h)
	}
}

// An open transaction is older than the overlap, or the other way round.
func TestHorizonTakesTheOlder(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := open(t, postgres.Options{URL: url})
	exec(t, connect(t, url), eventsTable)
	exec(t, connect(t, url), "BEGIN; SELECT pg_sleep(0.5)")
	q := events()
	for overlap, least := range map[time.Duration]time.Duration{time.Millisecond: 1500 * time.Millisecond, time.Hour: time.Hour} {
		q.Overlap = overlap
		if h := horizon(t, s, q); !h.Exact || h.Lag < least || h.Lag > least+time.Minute {
			t.Errorf("horizon = %+v with an overlap of %s, want a lag of at least %s", h, overlap, least)
		}
	}
}

// A prepared transaction does not tell when it began, so nothing is settled
// while it lasts. What was settled before it was prepared is none of its rows.
func TestHorizonHeldByPreparedTransaction(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_prepared_transactions": "2"}})
	s := open(t, postgres.Options{URL: server.URL("postgres")})
	writer := connect(t, server.URL("postgres"))
	exec(t, writer, eventsTable)
	exec(t, writer, "BEGIN; INSERT INTO events VALUES (1, now())")
	before := horizon(t, s, events())
	exec(t, writer, "PREPARE TRANSACTION 'half done'")
	if h := horizon(t, s, events()); h.Cursor != "" {
		t.Errorf("horizon = %+v beside a prepared transaction, want it empty", h)
	}
	exec(t, writer, "COMMIT PREPARED 'half done'")
	if rows := sourcetest.ReadAll(t, s, events(), observer.Range{From: before.Cursor}); len(rows) != 1 {
		t.Errorf("%d rows from the horizon before, want 1", len(rows))
	}
	if h := horizon(t, s, events()); h.Cursor == "" {
		t.Errorf("horizon = %+v after the end of the prepared transaction", h)
	}
}
