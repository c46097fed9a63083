package lockdb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// stalledCopy is the age of a COPY that counts as stalled in these tests.
const stalledCopy = 100 * time.Millisecond

// TestSessionThatStoppedInACopyIsEnded has a session lock a cursor and stop in
// the middle of a COPY, as a node does that is sent SIGSTOP. The server would
// wait for it for ever.
func TestSessionThatStoppedInACopyIsEnded(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db, err := lockdb.Open(lockdb.Options{
		URL: url, LockTimeout: 3 * time.Second, StalledCopy: stalledCopy, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := db.Store(acquire(t, db, "order-observer-poll"))
	c := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 1))

	ended := stopInACopy(t, url)
	mustCommit(t, s, chunk(c, 1))
	if err := <-ended; err == nil {
		t.Error("the stopped session committed")
	}
	if n := count(t, url, `SELECT count(*) FROM obs_event`); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}

// stopInACopy returns when a session has the cursor's row and has waited for the
// rest of its rows for so long that it counts as stalled; what becomes of it is
// told by the channel.
func stopInACopy(t *testing.T, url string) <-chan error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `UPDATE obs_cursor SET version = version + 1`); err != nil {
		t.Fatal(err)
	}
	rows, stop := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := conn.PgConn().CopyFrom(context.Background(), rows, `copy "public"."obs_observed" ( "stream_id", "version" ) from stdin`)
		ended <- err
	}()
	t.Cleanup(func() {
		_ = stop.Close()
		_ = conn.Close(context.Background())
	})
	if _, err := stop.Write([]byte("7\t")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, url, fmt.Sprintf(`
		SELECT count(*) FROM pg_stat_activity
		 WHERE pid = %d AND state = 'active' AND wait_event = 'ClientRead'
		   AND query_start < clock_timestamp() - make_interval(secs => %f)`, conn.PgConn().PID(), stalledCopy.Seconds()))
	return ended
}

// patiently has statements wait for a row until the test lets them go on.
func patiently(o *lockdb.Options) { o.LockTimeout = patience }

// soon is in time for a statement that does not wait for a lock: no machine stands
// still for so long. A statement that waits for one takes longer.
const soon = 10 * time.Second

// TestBlockedCursorBlocksNoNeighbour shows that a commit that waits for its
// cursor leaves the lease to the other observers of its type.
func TestBlockedCursorBlocksNoNeighbour(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db := quiet(t, url, patiently)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := acquire(t, db, "order-observer-poll")
	s := db.Store(g)
	blocked, free := cursorOf(t, s, "blocked"), cursorOf(t, s, "free")
	other, _ := raw(t, url)
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), `SELECT 1 FROM obs_cursor WHERE stream = 'blocked' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Commit(t.Context(), chunk(blocked, 1))
		done <- err
	}()
	waitFor(t, url, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)

	brief, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if _, err := s.Commit(brief, chunk(free, 1)); err != nil {
		t.Errorf("the neighbour's commit: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the blocked commit, after its cursor was free: %v", err)
	}
}

// waitFor asks until the count is not 0.
func waitFor(t *testing.T, url, query string) {
	t.Helper()
	eventually(t, func() error {
		if count(t, url, query) == 0 {
			return errors.New("nobody waits: the test proves nothing")
		}
		return nil
	})
}

// TestPoisonRowsThatLookAlike covers rows without a readable key.
func TestPoisonRowsThatLookAlike(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 2500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				s := db.Store(acquire(t, db, "order-observer-poll"))
				ch := chunk(cursorOf(t, s, "orders"), n)
				ch.Dead = []observer.Dead{{Reason: "column id is NULL in the key"}, {Reason: "column id is NULL in the key"}}
				mustCommit(t, s, ch)
				if n := count(t, url, `SELECT count(*) FROM obs_dead`); n != 1 {
					t.Errorf("%d poison rows, want 1", n)
				}
			})
		})
	}
}
