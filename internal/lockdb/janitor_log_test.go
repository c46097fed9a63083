package lockdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// TestCleanLeavesNoGap has a clock that went back while events were logged, as
// at a failover: the older ones seem to be younger. A log without those behind
// them would halt a sink that begins now.
func TestCleanLeavesNoGap(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		s := db.Store(acquire(t, db, "order-observer-poll"))
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 10))
		acknowledge(t, db, "file", 10)
		exec(t.Context(), t, url, map[string]string{
			"sqlite":   `UPDATE obs_event SET logged_at = '2000-01-01 00:00:00.000000' WHERE seq IN (1, 2, 5, 6)`,
			"postgres": `UPDATE obs_event SET logged_at = '2000-01-01' WHERE seq IN (1, 2, 5, 6)`,
		})
		if _, err := db.Clean(t.Context(), retention()); err != nil {
			t.Fatal(err)
		}
		left, err := db.Log().After(t.Context(), "orders", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) != 8 || left[0].Seq != 3 {
			t.Errorf("%d events are left, from %d; want 8, from 3", len(left), left[0].Seq)
		}
	})
}

// TestCleanReadsNoEventTwice removes many events while another transaction keeps
// their versions alive, as a backup does. The deletions of a run must not read again
// the events that it has removed.
func TestCleanReadsNoEventTwice(t *testing.T) {
	t.Parallel()
	const events = 60_000
	url := pgtest.New(t)
	db, err := lockdb.Open(lockdb.Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, _ := raw(t, url)
	for _, text := range []string{
		`ALTER TABLE obs_event SET (autovacuum_enabled = off)`,
		fmt.Sprintf(`INSERT INTO obs_cursor (stream, last_seq) VALUES ('orders', %d)`, events),
		fmt.Sprintf(`INSERT INTO obs_event (stream, seq, event_id, type, subject, version, change, time, data, logged_at)
			SELECT 'orders', g, gen_random_uuid(), 'T', '', 1, 'new', '2000-01-01', '{}', '2000-01-01' FROM generate_series(1, %d) g`, events),
	} {
		if _, err := other.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	backup, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer backup.Close()
	if _, err := backup.ExecContext(t.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM obs_cursor`); err != nil {
		t.Fatal(err)
	}
	r := retention()
	r.Sinks = nil
	if n, err := db.Clean(t.Context(), r); err != nil || n != events {
		t.Fatalf("removed %d, %v", n, err)
	}
	if err := db.Close(); err != nil { // Sessions that end tell what they have read.
		t.Fatal(err)
	}
	waittest.Eventually(t, time.Minute, func() error {
		switch read := count(t, url, `SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'obs_event_pkey'`); {
		case read < events:
			return errors.New("the reads are not known yet")
		case read > 4*events:
			t.Fatalf("%d entries of the index were read to remove %d events", read, events)
		}
		return nil
	})
}

// TestJanitorOutlastsALostConnection has a connection on which nothing is ever
// answered, while others work: the lease of the janitor is renewed, and so
// would not end the wait.
func TestJanitorOutlastsALostConnection(t *testing.T) {
	t.Parallel()
	proxied, proxy := netfault.StartBefore(t, pgtest.New(t))
	db := open(t, proxied)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	never := make(chan struct{})
	proxy.Inspect(func(request []byte) netfault.Fault {
		if bytes.Contains(request, []byte(`DELETE FROM "public"."obs_poll"`)) {
			return netfault.Fault{Hold: never}
		}
		return netfault.Fault{}
	})
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	j := &lockdb.Janitor{
		DB: db, Retention: retention(), Every: 10 * time.Millisecond, Limit: 200 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		UnderLock: func(ctx context.Context, f func(context.Context) error) error {
			err := f(ctx)
			select {
			case ended <- err:
			default:
			}
			return err
		},
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.Run(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the janitor ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the janitor waits for ever")
	}
}

// TestCleanSparesASinkThatIsFedAgain has a relay begin to feed a former sink in
// the moment between the janitor's look and its deletion. An offset that went
// back would have the sink be sent again what it has stored; without the events
// behind it its stream would halt.
func TestCleanSparesASinkThatIsFedAgain(t *testing.T) {
	t.Parallel()
	direct := pgtest.New(t)
	proxied, proxy := netfault.StartBefore(t, direct)
	db, other := open(t, proxied), open(t, direct)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	tenEvents(t, other, direct)
	acknowledge(t, other, "former", 2)
	age(t, direct, "obs_sink_offset", "updated_at")
	held, goOn := make(chan struct{}, 1), make(chan struct{})
	proxy.Inspect(func(request []byte) netfault.Fault {
		if !bytes.Contains(request, []byte("former")) {
			return netfault.Fault{}
		}
		select {
		case held <- struct{}{}:
			return netfault.Fault{Hold: goOn}
		default:
			return netfault.Fault{}
		}
	})
	cleaned := make(chan error, 1)
	go func() {
		_, err := db.Clean(t.Context(), retention())
		cleaned <- err
	}()
	<-held
	acknowledge(t, other, "former", 5)
	close(goOn)
	if err := <-cleaned; err != nil {
		t.Fatal(err)
	}
	if n := count(t, direct, `SELECT coalesce(max(last_seq), 0) FROM obs_sink_offset WHERE sink = 'former' AND stream = 'orders'`); n != 5 {
		t.Errorf("the offset has gone back from 5 to %d", n)
	}
	left(t, other, 6)
}

// TestCleanGoesOnAfterARefusal has a database that refuses to delete rows of
// the audit. Everything else must not grow because of that.
func TestCleanGoesOnAfterARefusal(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		s := db.Store(acquire(t, db, "order-observer-poll"))
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 10))
		if _, err := db.Operations().Pause(t.Context(), "orders", by("alice"), 0); err != nil {
			t.Fatal(err)
		}
		age(t, url, "obs_audit", "at")
		age(t, url, "obs_event", "logged_at")
		exec(t.Context(), t, url, map[string]string{
			"sqlite": `CREATE TRIGGER keep BEFORE DELETE ON obs_audit BEGIN SELECT RAISE(ABORT, 'kept'); END`,
			"postgres": `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'kept'; END $$;
				CREATE TRIGGER keep BEFORE DELETE ON obs_audit FOR EACH ROW EXECUTE FUNCTION keep()`,
		})
		r := retention()
		r.Sinks = nil
		if n, err := db.Clean(t.Context(), r); err == nil || n != 10 {
			t.Errorf("removed %d rows, %v; want the 10 events, and a word of the audit table", n, err)
		}
	})
}
