package lockdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/liveness"
	"github.com/observerd/observerd/test/kit/waittest"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// never is a TTL that cannot explain what happens in a test.
const never = time.Hour

// eventually asks again until there is no complaint.
func eventually(t *testing.T, complaint func() error) {
	t.Helper()
	waittest.Eventually(t, patience, complaint)
}

// logbook keeps a log.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) count(words ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.text.String()) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		n++
	}
	return n
}

// watchAs makes a watcher whose liveness has not begun.
func watchAs(t *testing.T, url, boot string, changes ...func(o *liveness.Options)) *watcher {
	t.Helper()
	w := &watcher{boot: boot, log: &logbook{}}
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if w.db, err = lockdb.Open(lockdb.Options{URL: url, BootID: boot, Logger: log, Registerer: prometheus.NewRegistry()}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.db.Migrate(t.Context()), w.db.Ready(t.Context())); err != nil {
		t.Fatal(err)
	}
	w.keeper = lock.NewKeeper(lock.KeeperOptions{Provider: w.db.Leases(), Logger: log})
	o := liveness.Options{
		Regions: []string{"DEFAULT"}, Logger: log, SignOfLife: w.keeper.RenewNow,
		Beat: func(string, time.Duration) { w.beats.Add(1) },
	}
	for _, change := range changes {
		change(&o)
	}
	w.live = w.db.NewLiveness(o)
	w.quit = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := errors.Join(w.keeper.Close(ctx), w.live.Stop(ctx), w.db.Close()); err != nil {
			t.Errorf("stop a watcher: %v", err)
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", boot, w.log.text.String())
		}
	})
	t.Cleanup(w.quit)
	return w
}

// tries complains until the watcher has acquired the lock.
func (w *watcher) tries(t *testing.T, key string) func() error {
	t.Helper()
	return func() error {
		_, err := w.db.Leases().Acquire(t.Context(), request(key))
		return err
	}
}

func TestLeaseOfADeadProcessIsFreed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		h := holdElsewhere(t, url, never)
		judges := []*watcher{watch(t, url), watch(t, url)}
		freed := judges[1].watches(t, h)
		began := time.Now()
		h.kill()
		for _, w := range judges {
			eventually(t, func() error {
				if !w.live.Gone(h.boot) {
					return errors.New("the dead node is not known to be dead")
				}
				return nil
			})
		}
		eventually(t, func() error {
			if n := count(t, url, `SELECT count(*) FROM int_lock`); n != 0 {
				return errors.New("the lease still stands")
			}
			return nil
		})
		t.Logf("freed after %s", time.Since(began))
		select {
		case <-freed:
		case <-time.After(patience):
			t.Fatal("nobody was woken")
		}
		said := func(words ...string) int { return judges[0].logged(words...) + judges[1].logged(words...) }
		eventually(t, func() error {
			// An attempt may have been carried out that was not answered in time.
			if said("Lease freed", "from=holder")+said("Lease without a holder not freed") == 0 {
				return errors.New("nobody says that the lease was freed")
			}
			return nil
		})
		if n := said("Lease freed", "from=holder"); n > 1 {
			t.Errorf("freed %d times, want once", n)
		}
		acquireAfter(t, judges[1], "rule=session-gone", "from=holder")
		// A holder that was not dead after all writes nothing.
		if _, err := judges[0].db.Store(h.grant).Cursor(t.Context(), "orders"); !errors.Is(err, lock.ErrFenced) {
			t.Errorf("the freed term may still write: %v", err)
		}
	})
}

// acquireAfter acquires the lock of the holder and looks into the log.
func acquireAfter(t *testing.T, w *watcher, words ...string) {
	t.Helper()
	eventually(t, w.tries(t, heldByProcess))
	if w.logged(append(words, "Lease taken over", "lock="+heldByProcess)...) != 1 {
		t.Errorf("the log does not say %v", words)
	}
}

// watches returns what the lock of the holder being free would be told by, when
// the watcher has looked since.
func (w *watcher) watches(t *testing.T, h *holder) (freed <-chan struct{}) {
	t.Helper()
	began := w.beats.Load()
	eventually(t, func() error {
		if w.beats.Load() < began+3 {
			return errors.New("the watcher has not looked")
		}
		if freed = w.live.Freed(h.grant.Request); freed == nil {
			return errors.New("the watcher does not watch")
		}
		return nil
	})
	return freed
}

func TestSleepingProcessKeepsItsLeaseForTheTTL(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		w := watch(t, url)
		h := holdElsewhere(t, url, never)
		freed := w.watches(t, h)
		h.signal(t, syscall.SIGSTOP)
		<-time.After(3 * time.Second) // A node that is absent for so long is judged.
		take := func() error {
			_, err := w.db.Leases().Acquire(t.Context(), h.grant.Request)
			return err
		}
		if err := take(); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("the lock of a sleeping process before the end of its TTL: %v", err)
		}
		expire(t.Context(), t, url, h.grant)
		select {
		case <-freed: // the end of the TTL wakes too
		case <-time.After(patience):
			t.Error("nobody was woken")
		}
		w.watches(t, h)
		eventually(t, take)
		if n := w.logged("Lease freed"); n != 0 {
			t.Errorf("a sleeping process was judged dead %d times", n)
		}
		if w.logged("Lease taken over", "rule=ttl", "from=holder") != 1 {
			t.Error("the log does not say that the TTL ruled")
		}
	})
}

func TestYoungJudgeJudgesNobody(t *testing.T) {
	t.Parallel()
	url := newPostgres(t)
	h := holdElsewhere(t, url, never)
	w := watch(t, url, func(o *liveness.Options) { o.Age = never })
	control := watch(t, url)
	h.kill()
	eventually(t, func() error {
		if !control.live.Gone(h.boot) {
			return errors.New("nobody sees the death")
		}
		return nil
	})
	if w.live.Gone(h.boot) || w.logged("Lease freed") != 0 {
		t.Error("a session that has just begun has judged another")
	}
}

// TestStrangersAreNotJudged covers a holder whose death cannot be seen, beside a row that names
// a dead process of ours.
func TestStrangersAreNotJudged(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		w := watch(t, url)
		h := holdElsewhere(t, url, never)
		// A Spring node took the lock after ours had released it.
		describe := `INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness, metadata)
			SELECT 'spring', region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness, metadata
			FROM obs_lock WHERE lock_key = '` + heldByProcess + `'`
		take := `INSERT INTO int_lock SELECT 'spring', region, '` + uuid.NewString() + `', created_date ` + expiryColumn(t, url) +
			` FROM int_lock WHERE lock_key = '` + heldByProcess + `'`
		exec(t.Context(), t, url, map[string]string{"sqlite": describe, "postgres": describe})
		exec(t.Context(), t, url, map[string]string{"sqlite": take, "postgres": take})
		h.kill()
		eventually(t, func() error {
			if n := count(t, url, `SELECT count(*) FROM int_lock`); n != 1 {
				return fmt.Errorf("%d locks are held, want that of the stranger", n)
			}
			return nil
		})
		if err := w.tries(t, "spring")(); !errors.Is(err, lock.ErrHeld) {
			t.Error(err)
		}
		expiry := ""
		if expiryColumn(t, url) != "" {
			expiry = ", expired_after = '2000-01-01'"
		}
		end := `UPDATE int_lock SET created_date = '2000-01-01 00:00:00.000000' ` + expiry + ` WHERE lock_key = 'spring'`
		exec(t.Context(), t, url, map[string]string{"sqlite": end, "postgres": end})
		eventually(t, w.tries(t, "spring"))
		if w.logged("Lease taken over", "lock=spring", "rule=ttl") != 1 {
			t.Error("the log does not give the rule")
		}
	})
}

// expiryColumn is what a copy of a row needs on a table of Spring Integration 7.
func expiryColumn(t *testing.T, url string) string {
	t.Helper()
	if db, dialect := raw(t, url); dialect == "postgres" && hasExpiry(t.Context(), t, db) {
		return ", expired_after"
	}
	return ""
}

func TestReleasedLockIsNoTakeover(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		a, b := watch(t, url), watch(t, url)
		for range 3 {
			for _, w := range []*watcher{a, b} {
				g := acquire(t, w.db, heldByProcess)
				if err := w.db.Leases().Release(t.Context(), g); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := a.logged("Lease taken over") + b.logged("Lease taken over"); n != 0 {
			t.Errorf("%d takeovers", n)
		}
	})
}

func TestNothingOfLivenessIsLeft(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ *lockdb.DB, url string) {
		w := watch(t, url)
		w.quit()
		if dialectOf(url) == "sqlite" {
			left, err := filepath.Glob(strings.TrimPrefix(url, "sqlite:") + "-alive-*")
			if err != nil || len(left) != 0 {
				t.Errorf("files %v, %v", left, err)
			}
			return
		}
		eventually(t, func() error {
			if n := count(t, url, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`); n != 0 {
				return fmt.Errorf("%d advisory locks", n)
			}
			return nil
		})
	})
}

func TestFilesOfTheDeadAreRemoved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "observerd.db")
	alive, dead, fresh := path+"-alive-"+uuid.NewString(), path+"-alive-"+uuid.NewString(), path+"-alive-"+uuid.NewString()
	unlock := hold(t, alive)
	defer unlock()
	for _, file := range []string{dead, fresh} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour)
	for _, file := range []string{dead, alive} {
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
	}
	watch(t, "sqlite:"+path)
	if _, err := os.Stat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of a dead process: %v", err)
	}
	for _, file := range []string{alive, fresh} {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("the file of a process that lives, or is starting: %v", err)
		}
	}
}
