package lockdb_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// tenEvents commits ten events that are old, and has the sink "file" store all.
func tenEvents(t *testing.T, db *lockdb.DB, url string) {
	t.Helper()
	s := db.Store(acquire(t, db, "order-observer-poll"))
	mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 10))
	acknowledge(t, db, "file", 10)
	age(t, url, "obs_event", "logged_at")
}

// left fails the test unless the events from first to the tenth are there.
func left(t *testing.T, db *lockdb.DB, first int64) {
	t.Helper()
	events, err := db.Log().After(t.Context(), "orders", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var seqs []int64
	for _, ev := range events {
		seqs = append(seqs, ev.Seq)
	}
	if int64(len(seqs)) != 11-first || len(seqs) > 0 && seqs[0] != first {
		t.Errorf("events %v are left, want those from %d", seqs, first)
	}
}

// TestStopTakesNoProtectionAway has a node stop whose sink could not be fed for
// long, as one does that is stopped because of that.
func TestStopTakesNoProtectionAway(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		tenEvents(t, db, url)
		acknowledge(t, db, "audit", 4)
		if err := db.Nodes().Beat(t.Context(), turn.Node{BootID: "other", Sinks: []string{"file", "audit", "never-fed"}}); err != nil {
			t.Fatal(err)
		}
		clean := func() {
			t.Helper()
			if _, err := db.Clean(t.Context(), retention()); err != nil {
				t.Fatal(err)
			}
		}
		age(t, url, "obs_sink_offset", "updated_at")
		if err := db.Nodes().Leave(t.Context(), "other"); err != nil {
			t.Fatal(err)
		}
		if n := count(t, url, `SELECT count(*) FROM obs_node`); n != 0 {
			t.Errorf("%d nodes are left", n)
		}
		if n := count(t, url, `SELECT count(*) FROM obs_sink_offset WHERE sink = 'never-fed'`); n != 0 {
			t.Error("the node left an offset of a sink that no relay has claimed")
		}
		clean()
		left(t, db, 5)
		age(t, url, "obs_sink_offset", "updated_at")
		clean() // It has not come back within the retention of events.
		left(t, db, 11)
		if err := db.Nodes().Leave(t.Context(), "unknown"); err != nil {
			t.Errorf("a node that never was leaves: %v", err)
		}
	})
}

// TestClaimProtectsASinkThatWasNeverFed covers a sink that cannot be opened.
func TestClaimProtectsASinkThatWasNeverFed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		tenEvents(t, db, url)
		if _, err := db.Log().Claim(t.Context(), "audit", 1); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Clean(t.Context(), retention()); err != nil {
			t.Fatal(err)
		}
		left(t, db, 1)
	})
}

// TestCleanKeepsWhatItCannotJudge has a database that refuses to remove the
// offsets of one sink. Everything else must not grow because of that, but the events
// behind a kept offset must stay.
func TestCleanKeepsWhatItCannotJudge(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		tenEvents(t, db, url)
		acknowledge(t, db, "former-1", 4)
		acknowledge(t, db, "former-2", 2)
		age(t, url, "obs_sink_offset", "updated_at")
		exec(t.Context(), t, url, map[string]string{
			"sqlite": `CREATE TRIGGER keep BEFORE DELETE ON obs_sink_offset WHEN OLD.sink = 'former-1' BEGIN SELECT RAISE(ABORT, 'kept'); END`,
			"postgres": `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'kept'; END $$;
				CREATE TRIGGER keep BEFORE DELETE ON obs_sink_offset FOR EACH ROW WHEN (OLD.sink = 'former-1') EXECUTE FUNCTION keep()`,
		})
		if _, err := db.Clean(t.Context(), retention()); err == nil || !strings.Contains(err.Error(), "kept") {
			t.Errorf("the refusal is not told: %v", err)
		}
		left(t, db, 5)
		if n := count(t, url, `SELECT count(*) FROM obs_sink_offset WHERE sink = 'former-2'`); n != 0 {
			t.Error("the refusal for one sink has kept the offsets of another")
		}
	})
}

// TestCleanGoesOnBesideALockedRow has a forgotten transaction in psql that has
// locked rows of the audit.
func TestCleanGoesOnBesideALockedRow(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db, err := lockdb.Open(lockdb.Options{URL: url, LockTimeout: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	tenEvents(t, db, url)
	if err := db.Nodes().Beat(t.Context(), turn.Node{BootID: "1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Operations().Pause(t.Context(), "orders", by("alice"), 0); err != nil {
		t.Fatal(err)
	}
	age(t, url, "obs_node", "seen_at")
	age(t, url, "obs_audit", "at")
	stranger(t, url, `SELECT 1 FROM obs_audit WHERE actor = $1 FOR UPDATE`, []string{"alice"})
	_, err = db.Clean(t.Context(), retention())
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "55P03" {
		t.Errorf("the row was not locked, or nobody says so: %v", err)
	}
	if n := count(t, url, `SELECT count(*) FROM obs_node`); n != 0 {
		t.Errorf("%d nodes are left", n)
	}
	left(t, db, 11)
}

// TestCleanEndsWithItsTime tries nothing else when its time is over, and where
// no server answers.
func TestCleanEndsWithItsTime(t *testing.T) {
	t.Parallel()
	told := func(t *testing.T, err error, want error) {
		t.Helper()
		if !errors.Is(err, want) || strings.Count(err.Error(), "\n") != 0 {
			t.Errorf("a run that is over went on:\n%v", err)
		}
	}
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := db.Clean(over, retention())
		told(t, err, context.Canceled)
	})
	t.Run("nobody answers", func(t *testing.T) {
		t.Parallel()
		proxied, proxy := netfault.StartBefore(t, pgtest.New(t))
		db := open(t, proxied)
		if err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		proxy.Refuse(true)
		proxy.Cut()
		_, err := db.Clean(t.Context(), retention())
		if !sqldb.Unavailable(err) {
			t.Errorf("the database is there: %v", err)
		}
		if n := strings.Count(err.Error(), "clean obs_"); n != 1 {
			t.Errorf("%d tables were tried:\n%v", n, err)
		}
	})
}

// TestCleanWaitsForARelayThatAcknowledges has the janitor come while a relay is
// in the middle of its first acknowledgement in a long time.
func TestCleanWaitsForARelayThatAcknowledges(t *testing.T) {
	t.Parallel()
	url := newPostgres(t)
	db := quiet(t, url, patiently)
	tenEvents(t, db, url)
	acknowledge(t, db, "former", 2)
	age(t, url, "obs_sink_offset", "updated_at")
	relay := stranger(t, url, `SELECT 1 FROM obs_sink_offset WHERE sink = $1 AND stream = '' FOR SHARE`, []string{"former"})
	if _, err := relay.ExecContext(t.Context(), `
		UPDATE obs_sink_offset SET last_seq = 5, updated_at = clock_timestamp() WHERE sink = 'former' AND stream = 'orders'`); err != nil {
		t.Fatal(err)
	}
	cleaned := make(chan error, 1)
	go func() {
		_, err := db.Clean(t.Context(), retention())
		cleaned <- err
	}()
	waitFor(t, url, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
	if err := relay.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-cleaned; err != nil {
		t.Fatal(err)
	}
	if n := count(t, url, `SELECT coalesce(max(last_seq), 0) FROM obs_sink_offset WHERE sink = 'former' AND stream = 'orders'`); n != 5 {
		t.Errorf("the offset has gone back from 5 to %d", n)
	}
	left(t, db, 6)
}

// TestCleanLeavesNoGapWhenTheClockStepsBack has the server's clock step back for
// a moment while a deletion is at work.
func TestCleanLeavesNoGapWhenTheClockStepsBack(t *testing.T) {
	t.Parallel()
	url := newPostgres(t)
	tenEvents(t, open(t, url), url)
	exec(t.Context(), t, url, map[string]string{"postgres": `
		CREATE SEQUENCE ticks;
		ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO true_clock;
		CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$
		BEGIN
		  RETURN CASE WHEN nextval('public.ticks') % 7 = 0 THEN '1990-01-01' ELSE true_clock() END;
		END $$`})
	db := open(t, url)
	if _, err := db.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(t, url, `SELECT last_value FROM ticks WHERE is_called`); n != 1 {
		t.Fatal("the sessions have another clock: the test proves nothing")
	}
	// By the clock that steps back other chores may do anything: they do not matter here.
	if _, err := db.Clean(t.Context(), retention()); err != nil {
		t.Fatal(err)
	}
	left(t, db, 11)
}
