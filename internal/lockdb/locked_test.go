package lockdb_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// stranger begins a transaction that is never ended, and runs the statement in
// it for each key.
func stranger(t *testing.T, url, statement string, keys []string) *sql.Tx {
	t.Helper()
	db, _ := raw(t, url)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	for _, key := range keys {
		if _, err := tx.ExecContext(t.Context(), statement, key); err != nil {
			t.Fatal(err)
		}
	}
	return tx
}

// TestLockedRowsStarveNoFreeLock has a stranger keep more rows of INT_LOCK
// locked than there are connections for acquisitions. Those locks cannot be
// taken; all others can, and no error says that the database is down.
func TestLockedRowsStarveNoFreeLock(t *testing.T) {
	t.Parallel()
	url, keys := pgtest.New(t), []string{"a", "b", "c", "d"}
	var log logged
	db, err := lockdb.Open(lockdb.Options{URL: url, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	tx := stranger(t, url, `INSERT INTO int_lock VALUES ($1, 'DEFAULT', 'java', '2000-01-01')`, keys)
	var waiting sync.WaitGroup
	var refused atomic.Int64
	over := make(chan struct{})
	for _, key := range keys {
		waiting.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if _, err := db.Leases().Acquire(t.Context(), request(key)); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("a lock whose row is locked: %v", err)
					return
				}
				refused.Add(1)
			}
		})
	}
	waitFor(t, url, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
	for had := 0; had < 5 || refused.Load() < 8; had++ {
		g, err := db.Leases().Acquire(t.Context(), request("free"))
		if err == nil {
			err = db.Leases().Release(t.Context(), g)
		}
		if err != nil {
			t.Errorf("a free lock, after %d times: %v", had, err)
			break
		}
		if t.Failed() {
			break
		}
	}
	close(over)
	waiting.Wait()
	const word = "is locked by another transaction"
	if n := strings.Count(log.String(), word); n != len(keys) {
		t.Errorf("%d words of %d rows that are locked:\n%s", n, len(keys), &log)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Leases().Acquire(t.Context(), request("a")); err != nil {
		t.Errorf("a lock whose row is free again: %v", err)
	}
}

// logged is a log that goroutines may share.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was written so far.
func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestReleaseHoldsUpNobody gives leases back whose rows a stranger has locked,
// as many as there are connections for leases. The others are renewed and given
// back meanwhile, and these as soon as their rows are free.
func TestReleaseHoldsUpNobody(t *testing.T) {
	t.Parallel()
	direct := pgtest.New(t)
	proxied, proxy := netfault.StartBefore(t, direct)
	db := open(t, proxied)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys := []string{"row-that-is-locked-1", "row-that-is-locked-2"}
	held := []lock.Grant{acquire(t, db, keys[0]), acquire(t, db, keys[1])}
	kept, other, stuck := acquire(t, db, "kept"), acquire(t, db, "other"), acquire(t, db, "stuck")
	tx := stranger(t, direct, `SELECT 1 FROM int_lock WHERE lock_key = $1 FOR UPDATE`, keys)
	stranger(t, direct, `SELECT 1 FROM int_lock WHERE lock_key = $1 FOR UPDATE`, []string{stuck.Key})

	var seen [2]atomic.Bool
	proxy.Inspect(func(request []byte) netfault.Fault {
		for i := range keys {
			if bytes.Contains(request, []byte(keys[i])) {
				seen[i].Store(true)
			}
		}
		return netfault.Fault{}
	})
	released := make(chan error, len(held))
	for _, g := range held {
		go func() { released <- db.Leases().Release(t.Context(), g) }()
	}
	waittest.Eventually(t, time.Minute, func() error {
		if !seen[0].Load() || !seen[1].Load() {
			return errors.New("the releases have not begun")
		}
		return nil
	})
	for i := range 20 {
		if renewals, err := db.Leases().Renew(t.Context(), []lock.Grant{kept}); err != nil || renewals[0] != lock.Renewed {
			t.Fatalf("renewal %d: %v, %v", i, renewals, err)
		}
	}
	if err := db.Leases().Release(t.Context(), other); err != nil {
		t.Error(err)
	}
	select {
	case err := <-released:
		t.Fatalf("the renewals had to wait until the first release had ended: %v", err)
	default:
	}
	brief, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := db.Leases().Release(brief, stuck); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lock.ErrLost) {
		t.Errorf("a release whose time is over: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for range held {
		if err := <-released; err != nil {
			t.Errorf("the row is free, and the release says %v", err)
		}
	}
	if n := count(t, direct, `SELECT count(*) FROM int_lock`); n != 2 {
		t.Errorf("%d locks are left, want the one that was kept and the one whose row is locked still", n)
	}
}

// TestCloseGivesBackWhatItCan closes a keeper while a stranger has locked two
// of the rows of its leases.
func TestCloseGivesBackWhatItCan(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db := open(t, url)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	k := lock.NewKeeper(lock.KeeperOptions{Provider: db.Leases()})
	for i := range 8 {
		if _, err := k.Acquire(t.Context(), request(fmt.Sprint("lock-", i))); err != nil {
			t.Fatal(err)
		}
	}
	tx := stranger(t, url, `SELECT 1 FROM int_lock WHERE lock_key = $1 FOR UPDATE`, []string{"lock-0", "lock-1"})
	closed := make(chan error, 1)
	go func() { closed <- k.Close(context.WithoutCancel(t.Context())) }()
	waittest.Eventually(t, time.Minute, func() error {
		if n := count(t, url, `SELECT count(*) FROM int_lock`); n != 2 {
			return fmt.Errorf("%d locks are left, want the two whose rows are locked", n)
		}
		return nil
	})
	select {
	case err := <-closed:
		t.Fatalf("nothing was given back before the close had ended: %v", err)
	default:
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if n := count(t, url, `SELECT count(*) FROM int_lock`); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}
