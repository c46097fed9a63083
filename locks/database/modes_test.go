package database_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/locks"
)

var (
	writing = locks.Descriptor{Subject: "schema", Predicate: "writing", Resources: []string{"tenant-123", "VA-IRRL-LIN"}, TTL: 30 * time.Second}
	reading = locks.Descriptor{Subject: "schema", Predicate: "reading", Resources: writing.Resources, Mode: locks.Shared, TTL: 5 * time.Second}
)

func release(t *testing.T, l *locks.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

func TestReadersOfTwoProcesses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		a, b, w := open(t, url, "a"), open(t, url, "b"), open(t, url, "w")
		first, second := acquire(t, a, reading), acquire(t, b, reading)
		for _, l := range []*locks.Lease{first, second} {
			var held *locks.HeldError
			if _, err := w.Acquire(t.Context(), writing, locks.FailFast()); !errors.As(err, &held) || held.Node != "a" && held.Node != "b" || held.Left <= 0 {
				t.Errorf("%v: %+v", err, held)
			}
			release(t, l)
		}
		writer := acquire(t, w, writing)
		if _, err := a.Acquire(t.Context(), reading, locks.FailFast()); !errors.Is(err, locks.ErrHeld) {
			t.Errorf("a reader beside the writer: %v", err)
		}
		release(t, writer)
		release(t, acquire(t, a, reading))
	})
}

// Two processes take each of three locks again and again; a third wants all of them, and
// finds one held. Once it stands in all lines, a user of a lock gets it at most twice: one
// grant may be under way, and one may be ahead.
func TestSetIsServedAmongUsersOfItsLocks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		served := make([]atomic.Int64, 3)
		set := make([]locks.Descriptor, len(served))
		for i := range set {
			set[i] = locks.Descriptor{Subject: "schema", Predicate: "writing", Resources: []string{strconv.Itoa(i)}}
		}
		var users sync.WaitGroup
		defer users.Wait()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for _, m := range []*locks.Manager{open(t, url, "a"), open(t, url, "b")} {
			for i := range set {
				users.Go(func() {
					for ctx.Err() == nil {
						l, err := m.Acquire(t.Context(), set[i], locks.Within(time.Minute))
						if err != nil {
							t.Error(err)
							return
						}
						served[i].Add(1)
						time.Sleep(time.Millisecond) // It does some work, and leaves room for other tests.
						release(t, l)
					}
				})
			}
		}
		got := make(chan locks.Leases, 1)
		c := open(t, url, "c")
		held, err := c.Acquire(t.Context(), set[0], locks.Within(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		users.Go(func() {
			all, err := c.AcquireAll(t.Context(), set, locks.Within(30*time.Second))
			if err != nil {
				t.Error(err)
			}
			got <- all
		})
		db := pool(t, url)
		for noted := 0; noted < len(set) && len(got) == 0; time.Sleep(time.Millisecond) {
			if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM obs_wait WHERE node = 'c'`).Scan(&noted); err != nil {
				t.Fatal(err)
			}
		}
		before := make([]int64, len(served))
		for i := range served {
			before[i] = served[i].Load()
		}
		release(t, held)
		all := <-got
		for i := range served {
			t.Logf("lock %d: %d times before, %d times while the set waited", i, before[i], served[i].Load()-before[i])
			if n := served[i].Load() - before[i]; n > 4 {
				t.Errorf("lock %d was granted %d times to others while the set waited", i, n)
			}
		}
		if err := all.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A reader that is renewed for longer than its TTL keeps the writer out, and loses the lock
// when its row is gone.
func TestReaderIsRenewedAndLost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		a, w := open(t, url, "a"), open(t, url, "w")
		short := reading
		short.TTL = 3 * time.Second // An attempt has no longer than that, with its connection.
		l := acquire(t, a, short)
		select {
		case <-time.After(l.TTL() + l.TTL()/2):
		case <-l.Context().Done():
			t.Skipf("this machine stood still for a TTL: %v", context.Cause(l.Context()))
		}
		if _, err := w.Acquire(t.Context(), writing, locks.FailFast()); !errors.Is(err, locks.ErrHeld) && l.Context().Err() == nil {
			t.Errorf("the writer beside a reader: %v", err)
		}
		if _, err := pool(t, url).ExecContext(t.Context(), `DELETE FROM obs_hold`); err != nil {
			t.Fatal(err)
		}
		<-l.Context().Done()
		if cause := context.Cause(l.Context()); !errors.Is(cause, locks.ErrLost) {
			t.Errorf("cause %v, want ErrLost", cause)
		}
		if err := l.Release(t.Context()); !errors.Is(err, locks.ErrLost) {
			t.Errorf("release: %v, want ErrLost", err)
		}
		acquire(t, w, writing) // The row of those who shared it stands in nobody's way.
	})
}

// Two readers write under their locks at the same time; a writer that came would be
// refused, and one that has come refuses them.
func TestGuardOfReaders(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		m, db := open(t, url, "a"), pool(t, url)
		guard := func(l *locks.Lease) error {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			if err := l.Guard(t.Context(), tx); err != nil {
				return err
			}
			if strings.HasPrefix(url, "postgres") {
				if _, err := m.Acquire(t.Context(), writing, locks.FailFast()); !errors.Is(err, locks.ErrHeld) {
					t.Errorf("a writer beside a guarded transaction: %v", err)
				}
			}
			return tx.Commit()
		}
		first, second := acquire(t, m, reading), acquire(t, m, reading)
		for _, l := range []*locks.Lease{first, second} {
			if err := guard(l); err != nil {
				t.Fatal(err)
			}
		}
		if err := second.Extend(t.Context(), time.Hour); err != nil || second.TTL() != time.Hour {
			t.Fatalf("extend: %v, TTL %s", err, second.TTL())
		}
		release(t, first)
		if err := guard(first); !errors.Is(err, locks.ErrFenced) {
			t.Errorf("after the release: %v, want ErrFenced", err)
		}
		if _, err := db.ExecContext(t.Context(), `DELETE FROM int_lock`); err != nil {
			t.Fatal(err)
		}
		acquire(t, m, writing)
		if err := guard(second); !errors.Is(err, locks.ErrFenced) {
			t.Errorf("after the writer has come: %v, want ErrFenced", err)
		}
	})
}

// Pages below one fileset are written by many at once, while others want the whole of it.
func TestHierarchyUnderContention(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		var inside tree
		var work sync.WaitGroup
		for _, node := range []string{"a", "b"} {
			m := open(t, url, node)
			for i := range 4 {
				d := locks.Descriptor{Subject: "page", Predicate: "writing", Resources: []string{"fs-1", string(rune('1' + i%2))}}
				if i == 3 {
					d = locks.Descriptor{Subject: "fileset", Predicate: "processing", Resources: []string{"fs-1"}}
				}
				work.Go(func() {
					for range 5 {
						err := m.Do(t.Context(), d, func(ctx context.Context, _ *locks.Lease) error {
							defer inside.enter(t, d.Resources)()
							select {
							case <-time.After(time.Millisecond):
							case <-ctx.Done():
							}
							return nil
						}, locks.WithIntents(), locks.Within(5*time.Minute))
						if err != nil && !errors.Is(err, locks.ErrLost) {
							t.Errorf("%s: %v", d, err)
						}
					}
				})
			}
		}
		work.Wait()
		var left int
		if err := pool(t, url).QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM int_lock) + (SELECT count(*) FROM obs_hold)`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d rows are left, %v", left, err)
		}
	})
}

// tree is who works where: one on a fileset excludes all below it.
type tree struct {
	mu   sync.Mutex
	work map[string]int
}

func (w *tree) enter(t *testing.T, resources []string) (leave func()) {
	t.Helper()
	name := strings.Join(resources, ":")
	w.mu.Lock()
	defer w.mu.Unlock()
	for other, n := range w.work {
		if n > 0 && (strings.HasPrefix(other+":", name+":") || strings.HasPrefix(name+":", other+":")) {
			t.Errorf("%s beside %s", name, other)
		}
	}
	if w.work == nil {
		w.work = make(map[string]int)
	}
	w.work[name]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.work[name]--
	}
}
