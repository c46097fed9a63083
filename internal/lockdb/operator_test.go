package lockdb_test

import (
	"errors"
	"testing"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

func TestPauseRefusesTheRunningPoll(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		s := db.Store(acquire(t, db, "order-observer-poll"))
		c := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 1))
		if err := db.Pause(t.Context(), "orders", "alice"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), chunk(c, 1)); !errors.Is(err, observer.ErrConflict) {
			t.Errorf("commit after a pause: %v", err)
		}
		if states, err := db.Streams(t.Context(), []string{"orders"}); err != nil || !states["orders"].Paused {
			t.Errorf("after the pause: %+v, %v", states, err)
		}
		if err := db.Resume(t.Context(), "orders", "bob"); err != nil {
			t.Fatal(err)
		}
		if states, err := db.Streams(t.Context(), []string{"orders"}); err != nil || states["orders"].Paused {
			t.Errorf("after the resume: %+v, %v", states, err)
		}
		acts, err := db.Acts(t.Context(), 10)
		if err != nil || len(acts) != 2 || acts[0].Action != "resume" || acts[0].Actor != "bob" || acts[1].Action != "pause" || acts[1].At.IsZero() {
			t.Errorf("audit: %+v, %v", acts, err)
		}
	})
}

func TestResetKeepsOrForgetsObservedRows(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		forget bool
		known  int
		rows   int64
	}{"keep": {false, 3, 3}, "forget": {true, 0, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				s := db.Store(acquire(t, db, "order-observer-poll"))
				before := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 3))
				if err := db.Reset(t.Context(), "orders", "alice", lockdb.ResetOptions{Forget: tc.forget}); err != nil {
					t.Fatal(err)
				}
				c := cursorOf(t, s, "orders")
				if c.Low != "" || c.Newest != "" || c.Fingerprint != "" || c.Version != before.Version+1 || c.LastSeq != 3 || c.Rows != tc.rows || c.Live != tc.rows {
					t.Errorf("cursor after reset: %+v", c)
				}
				if n := count(t, url, `SELECT count(*) FROM obs_observed`); n != tc.known {
					t.Errorf("%d observed rows, want %d", n, tc.known)
				}
			})
		})
	}
}

func TestOperatorOnUnknownStream(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		for name, act := range map[string]func() error{
			"resume": func() error { return db.Resume(t.Context(), "nope", "alice") },
			"reset":  func() error { return db.Reset(t.Context(), "nope", "alice", lockdb.ResetOptions{}) },
		} {
			if err := act(); !errors.Is(err, lockdb.ErrUnknownStream) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := count(t, url, `SELECT count(*) FROM obs_audit`); n != 0 {
			t.Errorf("refused acts left %d audit rows", n)
		}
	})
}
