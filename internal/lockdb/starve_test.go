package lockdb_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestRenewalsDoNotQueueBehindAcquisitions has a stranger keep rows of INT_LOCK
// locked, as a Java node does that is paused in the middle of its transactions.
// Who wants those locks waits; the leases that are held must not wait with it:
// they are renewed before any of these acquisitions has ended.
func TestRenewalsDoNotQueueBehindAcquisitions(t *testing.T) {
	t.Parallel()
	url, keys := pgtest.New(t), []string{"a", "b", "c", "d"}
	db := quiet(t, url, func(o *lockdb.Options) { o.AcquireWait = patience })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	held := acquire(t, db, "ours")
	tx := stranger(t, url, `INSERT INTO int_lock VALUES ($1, 'DEFAULT', 'java', '2000-01-01')`, keys)
	var waiting sync.WaitGroup
	var ended atomic.Int64
	over := make(chan struct{})
	defer func() {
		close(over)
		_ = tx.Rollback()
		waiting.Wait()
	}()
	for _, key := range keys {
		waiting.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				_, _ = db.Leases().Acquire(t.Context(), request(key)) // It waits for as long as it may.
				ended.Add(1)
			}
		})
	}
	for inTime, late := 0, 0; inTime < 6; {
		// All connections that acquisitions have.
		waitFor(t, url, `SELECT (count(*) >= 2)::int FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
		before := ended.Load()
		if r, err := db.Leases().Renew(t.Context(), []lock.Grant{held}); err != nil || r[0] != lock.Renewed {
			t.Fatalf("renewal: %v, %v", r, err)
		}
		if ended.Load() == before {
			inTime++
		} else if late++; late > 6 { // Chance, or it has waited for the acquisition that has ended.
			t.Fatalf("%d renewals came behind acquisitions, %d before them", late, inTime)
		}
	}
}
