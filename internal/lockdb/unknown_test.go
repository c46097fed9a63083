package lockdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestCommitWhoseAnswerIsLost cuts the connection after the commit was sent.
// Whatever has become of it, the store finds out, and nothing is written twice
// or lost.
func TestCommitWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rows int
		// late has the commit arrive when its fate is known; else it arrives, and
		// its answer is lost.
		late   bool
		marker string
		// committed says what the store must find.
		committed bool
		// sweep makes the chunk a step of one.
		sweep bool
	}{
		"statement, answer lost":      {3, false, "", true, false},
		"statement, arrives too late": {3, true, "", false, false},
		"transaction, answer lost":    {2500, false, "commit\x00", true, false},
		"transaction, cut before":     {2500, true, "", false, false},
		"step, answer lost":           {3, false, "commit\x00", true, true},
		"step, cut before":            {3, true, "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := pgtest.New(t)
			proxied, proxy := netfault.StartBefore(t, direct)
			db := open(t, proxied)
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			s := db.Store(acquire(t, db, "order-observer-poll"))
			before := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), tc.rows))
			ch := chunk(before, tc.rows)
			if tc.sweep {
				ch = step(before, tc.rows, startSweep(t, db, "orders", observer.SweepBackfill).ID, "2021")
			}
			marker := []byte(tc.marker)
			if tc.marker == "" {
				id := ch.CommitID
				marker = []byte(id.String())
			}
			fault, arrive := netfault.Fault{LoseAnswer: true}, func() {}
			if tc.late {
				fault, arrive = orphaned(t, direct)
			}
			var cut atomic.Bool
			proxy.Inspect(func(request []byte) netfault.Fault {
				hit := bytes.Contains(request, marker) && cut.CompareAndSwap(false, true)
				if !hit {
					return netfault.Fault{}
				}
				return fault
			})
			after, err := s.Commit(t.Context(), ch)
			proxy.Inspect(nil)
			if !cut.Load() {
				t.Fatal("the connection was never cut: the test proves nothing")
			}
			if (err == nil) != tc.committed {
				t.Fatalf("commit: %v, want committed %v", err, tc.committed)
			}
			arrive()
			checkFate(t, direct, s, before, after, tc.committed, tc.rows)
			if n := count(t, direct, `SELECT coalesce(sum(row_count), 0) FROM obs_sweep`); tc.sweep && n != map[bool]int{true: tc.rows}[tc.committed] {
				t.Errorf("the sweep counts %d rows", n)
			}
		})
	}
}

// orphaned is the fault of a request whose client is gone before it arrives,
// which it does when arrive is called. That returns when the session that was
// asked has ended, whatever it made of it.
func orphaned(t *testing.T, direct string) (fault netfault.Fault, arrive func()) {
	t.Helper()
	db, _ := raw(t, direct)
	var present string
	err := db.QueryRowContext(t.Context(), `
		SELECT string_agg(pid::text, ',') FROM pg_stat_activity
		 WHERE datname = current_database() AND application_name = 'observerd'`).Scan(&present)
	if err != nil {
		t.Fatal(err)
	}
	goOn := make(chan struct{})
	return netfault.Fault{Late: time.Millisecond, Hold: goOn}, func() {
		t.Helper()
		close(goOn)
		eventually(t, func() error {
			if n := count(t, direct, `SELECT count(*) FROM pg_stat_activity WHERE pid IN (`+present+`)`); n > strings.Count(present, ",") {
				return fmt.Errorf("all %d sessions are there still", n)
			}
			return nil
		})
	}
}

// checkFate counts the rows of the tables.
func checkFate(t *testing.T, direct string, s observer.Store, before, after observer.Cursor, committed bool, rows int) {
	t.Helper()
	want := rows
	now, err := s.Cursor(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	if committed {
		want = 2 * rows
		if now != after {
			t.Errorf("cursor %+v, as the commit said %+v", now, after)
		}
	} else if now.LastSeq != before.LastSeq || now.Version == before.Version {
		t.Errorf("an aborted commit must leave the sequence at %d and move the version past %d: %+v", before.LastSeq, before.Version, now)
	}
	if n := count(t, direct, `SELECT count(*) FROM obs_event`); n != want {
		t.Errorf("%d events, want %d", n, want)
	}
	if n := count(t, direct, `SELECT count(DISTINCT event_id) FROM obs_event`); n != want {
		t.Errorf("%d different events, want %d", n, want)
	}
}

// TestAcquisitionThatIsGivenUpLeavesNoLock cancels an attempt while its
// statement is on the way. It is carried out all the same, and given back.
func TestAcquisitionThatIsGivenUpLeavesNoLock(t *testing.T) {
	t.Parallel()
	direct := pgtest.New(t)
	proxied, proxy := netfault.StartBefore(t, direct)
	db := open(t, proxied)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Leases().Release(t.Context(), acquire(t, db, "order-observer-poll")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sent, release := make(chan struct{}), make(chan struct{})
	var hold sync.Once
	proxy.Inspect(func(request []byte) (f netfault.Fault) {
		if bytes.Contains(request, []byte("order-observer-poll")) {
			hold.Do(func() {
				f.Hold = release
				close(sent)
			})
		}
		return f
	})
	failed := make(chan error, 1)
	go func() {
		_, err := db.Leases().Acquire(ctx, request("order-observer-poll"))
		failed <- err
	}()
	<-sent
	cancel()
	close(release)
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("an attempt that was given up: %v", err)
	}
	if n := count(t, direct, `SELECT count(*) FROM int_lock`); n != 0 {
		t.Errorf("%d locks are left", n)
	}
	if n := count(t, direct, `SELECT count(*) FROM obs_lock WHERE fence > 1`); n != 1 {
		t.Error("the attempt was never carried out: the test proves nothing")
	}
}
