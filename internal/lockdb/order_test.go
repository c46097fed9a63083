package lockdb_test

import (
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
)

// TestSetsLockTheirRowsInOneOrder has a stranger lock the first row of a set that is asked
// for in the other order. While the set waits for that row, it has locked none behind it: two
// sets never wait for each other.
func TestSetsLockTheirRowsInOneOrder(t *testing.T) {
	t.Parallel()
	url := newPostgres(t)
	db, err := lockdb.Open(lockdb.Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	beside, _ := raw(t, url)
	if _, err := beside.ExecContext(t.Context(), `
		INSERT INTO int_lock (lock_key, region, client_id, created_date) VALUES ('a', 'DEFAULT', 'java', '2000-01-01'), ('b', 'DEFAULT', 'java', '2000-01-01')`); err != nil {
		t.Fatal(err)
	}
	stranger(t, url, `SELECT 1 FROM int_lock WHERE lock_key = $1 FOR UPDATE`, []string{"a"})
	over := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			if _, err := general(db).AcquireAll(t.Context(), []lock.Request{request("b"), request("a")}); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("a set one of whose rows is locked: %v", err)
				return
			}
		}
	})
	for range 5 {
		waitFor(t, url, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
		if _, err := beside.ExecContext(t.Context(), `SELECT 1 FROM int_lock WHERE lock_key = 'b' FOR UPDATE NOWAIT`); err != nil {
			t.Errorf("the row behind the one that is waited for: %v", err)
		}
	}
	close(over)
	asking.Wait()
}
