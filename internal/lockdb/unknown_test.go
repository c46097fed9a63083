package lockdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/netfault"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/pgtest"
)

// TestCommitWhoseAnswerIsLost cuts the connection after the commit was sent.
// Whatever has become of it, the store finds out, and nothing is written twice
// or lost.
func TestCommitWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	lost, late := netfault.Fault{LoseAnswer: true}, netfault.Fault{Late: 600 * time.Millisecond}
	for name, tc := range map[string]struct {
		rows   int
		fault  netfault.Fault
		marker string
		// committed says what the store must find.
		committed bool
	}{
		"statement, answer lost":      {3, lost, "", true},
		"statement, arrives too late": {3, late, "", false},
		"transaction, answer lost":    {2500, lost, "commit\x00", true},
		"transaction, cut before":     {2500, late, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := pgtest.New(t)
			proxied, proxy := through(t, direct)
			db := open(t, proxied)
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			s := db.Store(acquire(t, db, "order-observer-poll"))
			before := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), tc.rows))
			ch := chunk(before, tc.rows)
			marker := []byte(tc.marker)
			if tc.marker == "" {
				id := ch.CommitID
				marker = []byte(id.String())
			}
			var cut atomic.Bool
			proxy.Inspect(func(request []byte) netfault.Fault {
				hit := bytes.Contains(request, marker) && cut.CompareAndSwap(false, true)
				if !hit {
					return netfault.Fault{}
				}
				return tc.fault
			})
			after, err := s.Commit(t.Context(), ch)
			proxy.Inspect(nil)
			if !cut.Load() {
				t.Fatal("the connection was never cut: the test proves nothing")
			}
			if (err == nil) != tc.committed {
				t.Fatalf("commit: %v, want committed %v", err, tc.committed)
			}
			checkFate(t, direct, s, before, after, tc.committed, tc.rows, tc.fault.Late)
		})
	}
}

// checkFate waits for a late orphan and counts what is in the tables.
func checkFate(t *testing.T, direct string, s observer.Store, before, after observer.Cursor, committed bool, rows int, delay time.Duration) {
	t.Helper()
	if delay > 0 {
		// The orphan arrives meanwhile; there is no event to wait for, since it must do nothing.
		<-time.After(2 * delay)
	}
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

// through puts a proxy before the server of a URL.
func through(t *testing.T, direct string) (string, *netfault.Proxy) {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(fmt.Errorf("parse the test's URL"))
	}
	proxy := netfault.Start(t, u.Host)
	u.Host = proxy.Addr()
	return u.String(), proxy
}

// TestAcquisitionThatIsGivenUpLeavesNoLock cancels an attempt while its
// statement is on the way. It is carried out all the same, and given back.
func TestAcquisitionThatIsGivenUpLeavesNoLock(t *testing.T) {
	t.Parallel()
	direct := pgtest.New(t)
	proxied, proxy := through(t, direct)
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
