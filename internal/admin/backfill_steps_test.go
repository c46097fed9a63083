package admin

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/lockdbtest"
	"github.com/observerd/observerd/test/kit/slowsource"
)

// counted counts what a backfill asks of its source.
type counted struct {
	slowsource.Source
	asked *int
	step  func()
}

func (c counted) Identity(context.Context) (string, error) {
	*c.asked++
	if c.step != nil {
		c.step()
	}
	return "", nil
}

// backfilling returns a backfill of a stream with that low-water mark. Tests have
// it in a bubble: there a step reaches its limit when its source hangs, and not
// because the machine is slow.
func backfilling(t *testing.T, low string, src observer.Source) *backfill {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	db := lockdbtest.Open(t, log)
	o := config.Observer{
		ID: "orders", Type: "order", Event: "E", Detect: config.DetectNew, Table: "orders", Key: []string{"id"}, Timestamp: "at",
		ChunkSize: 1, MaxGone: 20, PollTimeout: 300 * time.Millisecond,
	}
	made, err := observer.New(wiring.Spec(o, log))
	if err != nil {
		t.Fatal(err)
	}
	typ := config.Type{Name: "order", LockName: "order-observer-poll", Lock: config.Lock{Region: "DEFAULT", TTL: time.Minute}, Interval: time.Second, Observers: []config.Observer{o}}
	g, err := db.Leases().Acquire(t.Context(), wiring.TypeLockRequest(typ, "test"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := db.Store(g).Cursor(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	ch := observer.Chunk{Before: c}
	c.Low, c.Newest = low, low
	ch.Advance(c)
	if _, err := db.Store(g).Commit(t.Context(), ch); err != nil {
		t.Fatal(err)
	}
	if err := db.Leases().Release(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	s, err := db.Sweeps().Start(t.Context(), observer.Sweep{Stream: o.ID, Kind: observer.SweepBackfill, Before: "999"}, By{Actor: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return &backfill{
		op: &Operator{cfg: &config.Config{}, log: log, db: db}, options: BackfillOptions{Observer: o.ID},
		observer: made, source: src, typ: typ, budget: stepBudget(typ.Interval, 0), sweep: s,
	}
}

// TestBackfillWaitsForAMark holds a backfill of a source that was replaced
// against its polls, which have not read any of it yet.
func TestBackfillWaitsForAMark(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		b := backfilling(t, "", counted{Source: slowsource.Source{Rows: 2}, asked: &asked})
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if _, err := b.run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if asked != 2 {
			t.Errorf("%d steps in a second and a half", asked)
		}
	})
}

// TestBackfillStopsWhenPaused pauses the observer while a step is on its way.
func TestBackfillStopsWhenPaused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, src := 0, &counted{Source: slowsource.Source{Rows: 2}}
		src.asked = &asked
		b := backfilling(t, "99", src)
		src.step = func() {
			if _, err := b.op.db.Operations().Pause(context.WithoutCancel(t.Context()), "orders", By{Actor: "test"}, 0); err != nil {
				t.Error(err)
			}
			src.step = nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		done, err := b.run(ctx)
		if err == nil || !strings.Contains(err.Error(), "observer orders is paused") || done.Rows != 0 || asked != 1 {
			t.Errorf("%v after %d steps, %+v", err, asked, done)
		}
	})
}

// TestBackfillDoesNotKeepTheLock shows that a step ends in the time of a poll,
// and that it is a failure only without progress.
func TestBackfillDoesNotKeepTheLock(t *testing.T) {
	t.Parallel()
	for rows, least := range map[int]int{0: 1, 2: 2} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			b := backfilling(t, "99", counted{Source: slowsource.Source{Rows: rows}, asked: &asked})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			done, err := b.run(ctx)
			if !errors.Is(err, errStepTimeout) || asked != least || done.Events != int64(max(0, rows-1)) {
				t.Errorf("%d rows: %v after %d steps, %+v", rows, err, asked, done)
			}
		})
	}
}

func TestBudgetOfAStep(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ got, want observer.Budget }{
		"a step":              {stepBudget(30*time.Second, 0), wiring.SweepBudget(stepTime, 0)},
		"of a short interval": {stepBudget(time.Second, 0), wiring.SweepBudget(250*time.Millisecond, 0)},
		"throttled":           {stepBudget(30*time.Second, 1000), observer.Budget{Rows: 2000, Time: stepTime}},
		"a drop at a time":    {stepBudget(30*time.Second, 0.1), observer.Budget{Rows: 1, Time: stepTime}},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, tc.got, tc.want)
		}
	}
}
