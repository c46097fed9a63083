package lockdb_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

func TestPauseRefusesTheRunningPoll(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		s := db.Store(acquire(t, db, "order-observer-poll"))
		c := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 1))
		if _, err := db.Operations().Pause(t.Context(), "orders", by("alice"), 0); err != nil {
			t.Fatal(err)
		}
		// A poll that has read the cursor only then had looked before whether the
		// stream is paused.
		for name, c := range map[string]observer.Cursor{"a pause": c, "reading the cursor of a paused stream": cursorOf(t, s, "orders")} {
			for _, n := range []int{1, 2500} {
				if _, err := s.Commit(t.Context(), chunk(c, n)); !errors.Is(err, observer.ErrConflict) {
					t.Errorf("commit of %d rows after %s: %v", n, name, err)
				}
			}
		}
		if states, err := db.Turns().Streams(t.Context(), []string{"orders"}); err != nil || !states["orders"].Paused {
			t.Errorf("after the pause: %+v, %v", states, err)
		}
		if _, err := db.Operations().Resume(t.Context(), "orders", by("bob"), ""); err != nil {
			t.Fatal(err)
		}
		if states, err := db.Turns().Streams(t.Context(), []string{"orders"}); err != nil || states["orders"].Paused {
			t.Errorf("after the resume: %+v, %v", states, err)
		}
		acts, err := db.Operations().Acts(t.Context(), lockdb.ActFilter{Limit: 10})
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
				if err := db.Operations().Reset(t.Context(), "orders", by("alice"), lockdb.ResetOptions{Forget: tc.forget}); err != nil {
					t.Fatal(err)
				}
				c := cursorOf(t, s, "orders")
				if c.Marks.Identity != "" || c.Marks.Columns != "" || !c.Marks.RereadAt.IsZero() {
					t.Errorf("the cursor remembers its source after reset: %+v", c)
				}
				if c.Low != "" || c.Newest != "" || c.Fingerprint != "" || c.Version != before.Version+1 || c.LastSeq != 3 || c.Rows != tc.rows || c.Live != tc.rows {
					t.Errorf("cursor after reset: %+v", c)
				}
				if (c.Marks.FollowedFrom == "") != tc.forget {
					t.Errorf("followed from %q", c.Marks.FollowedFrom)
				}
				if (c.Epoch > before.Epoch) != tc.forget {
					t.Errorf("epoch %d after epoch %d", c.Epoch, before.Epoch)
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
			"reset": func() error { return db.Operations().Reset(t.Context(), "nope", by("alice"), lockdb.ResetOptions{}) },
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

// TestResetMayKeepTheCursor accepts another query, or other columns, where the
// stream is.
func TestResetMayKeepTheCursor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		s := db.Store(acquire(t, db, "order-observer-poll"))
		before := mustCommit(t, s, chunk(mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 3)), 3))
		sweep := startSweep(t, db, "orders", observer.SweepReconcile)
		if err := db.Operations().Reset(t.Context(), "orders", by("alice"), lockdb.ResetOptions{KeepCursor: true}); err != nil {
			t.Fatal(err)
		}
		want := before
		want.Version++
		want.Fingerprint, want.Refusal, want.Accepted = "", "", ""
		want.Marks.Identity, want.Marks.Columns, want.Marks.FullColumns, want.Marks.Form = "", "", "", ""
		if got := cursorOf(t, s, "orders"); got != want {
			t.Errorf("cursor after the reset\n%+v, want\n%+v", got, want)
		}
		if _, err := s.Commit(t.Context(), chunk(before, 1)); !errors.Is(err, observer.ErrConflict) {
			t.Errorf("a poll that ran while the cursor was reset: %v", err)
		}
		if got := sweepOf(t, db, "orders", sweep.Kind); got.State != observer.SweepRunning {
			t.Errorf("the sweep is %s", got.State)
		}
		both := lockdb.ResetOptions{Forget: true, KeepCursor: true}
		if err := db.Operations().Reset(t.Context(), "orders", by("alice"), both); err == nil {
			t.Error("a cursor was kept and its rows forgotten")
		}
		if n := count(t, url, `SELECT count(*) FROM obs_observed`); n != 6 {
			t.Errorf("%d observed rows, want 6", n)
		}
		acts, err := db.Operations().Acts(t.Context(), lockdb.ActFilter{Limit: 1})
		if err != nil || acts[0].Action != "reset" || acts[0].Detail != "keep-cursor" || acts[0].Actor != "alice" {
			t.Errorf("audit: %+v, %v", acts, err)
		}
	})
}

// TestResetEndsABackoff shows that the next turn polls, whatever is reset.
func TestResetEndsABackoff(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		g := acquire(t, db, "order-observer-poll")
		for _, keep := range []bool{true, false} {
			now := time.Now()
			failed := turn.StreamTaken{
				Stream: "orders", At: now, Started: now, Finished: now, Failures: 3, RetryAt: now.Add(time.Hour), Outcome: turn.Error,
			}
			if err := db.Turns().NoteStream(t.Context(), g, failed); err != nil {
				t.Fatal(err)
			}
			if err := db.Operations().Reset(t.Context(), "orders", by("alice"), lockdb.ResetOptions{KeepCursor: keep}); err != nil {
				t.Fatal(err)
			}
			states, err := db.Turns().Streams(t.Context(), []string{"orders"})
			if s := states["orders"]; err != nil || s.Failures != 0 || !s.RetryAt.IsZero() {
				t.Errorf("after the reset, cursor kept %v: %+v, %v", keep, s, err)
			}
		}
	})
}

func TestResetCancelsSweeps(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		s := db.Store(acquire(t, db, "order-observer-poll"))
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 3))
		other := startSweep(t, db, "tasks", observer.SweepBackfill)
		for _, forget := range []bool{true, false} {
			for _, kind := range []observer.SweepKind{observer.SweepReconcile, observer.SweepBackfill} {
				startSweep(t, db, "orders", kind)
			}
			if err := db.Operations().Reset(t.Context(), "orders", by("alice"), lockdb.ResetOptions{Forget: forget}); err != nil {
				t.Fatal(err)
			}
			all := mustSweeps(t, db)
			if len(all) != 3 || all[0].State != observer.SweepCancelled || all[1].State != observer.SweepCancelled || all[2] != other {
				t.Errorf("sweeps after the reset: %+v", all)
			}
		}
	})
}

// TestAcceptIsForWhatWasRefused shows that an operator accepts only the refusal
// that was shown, and that a running poll does not use one accepted meanwhile.
func TestAcceptIsForWhatWasRefused(t *testing.T) {
	t.Parallel()
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
				s := db.Store(acquire(t, db, "order-observer-poll"))
				if err := db.Operations().Accept(t.Context(), "orders", by("alice"), "", ""); !errors.Is(err, lockdb.ErrRefusalMoved) {
					t.Errorf("accepted for a stream that was never polled: %v", err)
				}
				refusing := chunk(cursorOf(t, s, "orders"), n)
				refusing.After.Refusal = `{"kind":"gone"}`
				c := mustCommit(t, s, refusing)
				if err := db.Operations().Accept(t.Context(), "orders", by("alice"), `{"kind":"poison"}`, ""); !errors.Is(err, lockdb.ErrRefusalMoved) {
					t.Errorf("accepted what was not refused: %v", err)
				}
				if refusal, accepted, err := db.Streams().Refused(t.Context(), "orders"); err != nil || refusal != refusing.After.Refusal || accepted {
					t.Errorf("refused %q, accepted %v, %v", refusal, accepted, err)
				}
				if err := db.Operations().Accept(t.Context(), "orders", by("alice"), refusing.After.Refusal, "8 of 8"); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Commit(t.Context(), chunk(c, n)); !errors.Is(err, observer.ErrConflict) {
					t.Errorf("a poll that ran meanwhile: %v", err)
				}
				got := cursorOf(t, s, "orders")
				if got.Refusal != refusing.After.Refusal || got.Accepted != refusing.After.Refusal {
					t.Errorf("cursor after it was accepted: %+v", got)
				}
				if acts, err := db.Operations().Acts(t.Context(), lockdb.ActFilter{Limit: 1}); err != nil || acts[0].Action != "accept" || acts[0].Actor != "alice" || acts[0].Detail != "8 of 8" {
					t.Errorf("audit: %+v, %v", acts, err)
				}
				if got = mustCommit(t, s, chunk(got, n)); got.Refusal+got.Accepted != "" || cursorOf(t, s, "orders") != got {
					t.Errorf("cursor after the poll: %+v", got)
				}
			})
		})
	}
}

// TestPoisonRowsAreKnown follows a poison row from its refusal until it is
// forgotten.
func TestPoisonRowsAreKnown(t *testing.T) {
	t.Parallel()
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				s := db.Store(acquire(t, db, "order-observer-poll"))
				c := cursorOf(t, s, "orders")
				dead := []observer.Dead{{Key: "a", Reason: "r", Raw: []byte("{}")}, {Reason: "r"}, {Key: "other", Reason: "r"}}
				known := func(want observer.Burial) {
					t.Helper()
					got, err := s.Buried(t.Context(), c, dead)
					if err != nil || len(got) != 3 || got[0] != want || got[1] != want || got[2] != observer.NotBuried {
						t.Errorf("known: %v, %v, want %v", got, err, want)
					}
				}
				known(observer.NotBuried)
				ch := chunk(c, n)
				ch.Dead, ch.Refused = dead[:2], true
				c = mustCommit(t, s, ch)
				known(observer.BuriedRefused)
				ch = chunk(c, n)
				ch.Dead = dead[:2]
				c = mustCommit(t, s, ch)
				known(observer.Buried)
				exec(t.Context(), t, url, map[string]string{
					"sqlite":   `UPDATE obs_dead SET last_at = strftime('%Y-%m-%d %H:%M:%f000', 'now', '-25 hours')`,
					"postgres": `UPDATE obs_dead SET last_at = now() - interval '25 h'`,
				})
				known(observer.BuriedLong)
			})
		})
	}
}

// TestDefinitionIsKeptWithItsTime shows that a definition is as old as its first
// commit, and that a reset leaves it.
func TestDefinitionIsKeptWithItsTime(t *testing.T) {
	t.Parallel()
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
				s := db.Store(acquire(t, db, "order-observer-poll"))
				commit := func(definition string) observer.Cursor {
					t.Helper()
					ch := chunk(cursorOf(t, s, "orders"), n)
					ch.After.Definition = definition
					mustCommit(t, s, ch)
					c := cursorOf(t, s, "orders")
					if c.Definition != definition {
						t.Errorf("definition %q, want %q", c.Definition, definition)
					}
					return c
				}
				if c := commit(""); !c.DefinedAt.IsZero() {
					t.Errorf("none was set at %s", c.DefinedAt)
				}
				first := commit("a")
				if now, err := db.Now(t.Context()); err != nil || first.DefinedAt.IsZero() || first.DefinedAt.After(now) {
					t.Errorf("set at %s, %v", first.DefinedAt, err)
				}
				if again := commit("a"); !again.DefinedAt.Equal(first.DefinedAt) {
					t.Errorf("set at %s, and again at %s", first.DefinedAt, again.DefinedAt)
				}
				time.Sleep(2 * time.Millisecond) // SQLite's clock has milliseconds.
				if next := commit("b"); !next.DefinedAt.After(first.DefinedAt) {
					t.Errorf("another one was set at %s, the first at %s", next.DefinedAt, first.DefinedAt)
				}
				if err := db.Operations().Reset(t.Context(), "orders", by("alice"), lockdb.ResetOptions{}); err != nil {
					t.Fatal(err)
				}
				if c := cursorOf(t, s, "orders"); c.Definition != "b" || c.Marks.Form != "" {
					t.Errorf("after a reset: definition %q, form %q", c.Definition, c.Marks.Form)
				}
			})
		})
	}
}
