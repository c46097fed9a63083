package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/lockdbtest"
)

func TestReconcileIsDue(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 30, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		started, now time.Time
		want         bool
		interval     time.Duration
	}{
		"never done, at its time":     {time.Time{}, at, true, time.Minute},
		"never done, soon after":      {time.Time{}, at.Add(59 * time.Minute), true, time.Minute},
		"never done, at noon":         {time.Time{}, at.Add(8 * time.Hour), false, time.Minute},
		"never done, polled rarely":   {time.Time{}, at.Add(3 * time.Hour), true, 6 * time.Hour},
		"done yesterday":              {at.Add(-24 * time.Hour), at, true, time.Minute},
		"missed, made up for at noon": {at.Add(-24 * time.Hour), at.Add(8 * time.Hour), true, time.Minute},
		"begun already":               {at, at.Add(time.Minute), false, time.Minute},
		"begun late":                  {at.Add(time.Hour), at.Add(2 * time.Hour), false, time.Minute},
	} {
		last := observer.Sweep{StartedAt: tc.started}
		if !tc.started.IsZero() {
			last.ID = 1
		}
		if got := isDue(last, at, tc.now, tc.interval); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestBudgetOfAReconcile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ got, want observer.Budget }{
		"a reconcile":         {reconcileBudget(30*time.Second, 0), wiring.SweepBudget(7500*time.Millisecond, 0)},
		"of a short interval": {reconcileBudget(time.Second, 0), wiring.SweepBudget(time.Second, 0)},
		"throttled":           {reconcileBudget(20*time.Second, 100), observer.Budget{Rows: 500, Time: 5 * time.Second}},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, tc.got, tc.want)
		}
	}
}

// TestStepBackoff holds the pauses after failures against the time.
func TestStepBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s stepBackoff
		for _, minutes := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
			pause := time.Duration(minutes) * time.Minute
			if s.lasts() {
				t.Fatal("it lasts at the time of the next try")
			}
			s.record(true, false)
			time.Sleep(pause - time.Second)
			if !s.lasts() {
				t.Fatalf("it is over before %v", pause)
			}
			time.Sleep(time.Second)
		}
		if got := s.grown(time.Second); got != time.Second {
			t.Errorf("after failures that more time would not help a step may take %v", got)
		}
		for range 4 {
			s.record(true, true)
		}
		if got := s.grown(time.Minute); got != mostGrown {
			t.Errorf("after many steps that were too short one may take %v", got)
		}
		s.record(false, false)
		if s.lasts() || s.grown(time.Second) != time.Second {
			t.Error("a step that got on did not end it")
		}
	})
}

// broken is a source that says nothing of itself, counts the calls, and notes the time
// that it is given.
type broken struct {
	observer.Source
	asked int
	given time.Duration
	fault error
}

func (b *broken) Identity(ctx context.Context) (string, error) {
	b.asked++
	if end, ok := ctx.Deadline(); ok {
		b.given = time.Until(end)
	}
	return "", b.fault
}

// TestReconcileThatFailsIsLeftAlone takes two turns of a reconcile that fails, and two more
// after the pauses: a step that took too long is followed by one that has more time.
func TestReconcileThatFailsIsLeftAlone(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	src, db := &broken{fault: errors.New("broken")}, lockdbtest.Open(t, log)
	p, err := wiring.NewPoller(config.Observer{
		ID: "orders", Type: "order", Event: "E", Detect: config.DetectNew, Table: "orders", Key: []string{"id"}, Timestamp: "at",
		ChunkSize: 1, MaxGone: 20, PollTimeout: 300 * time.Millisecond,
	}, wiring.Definition{}, src, db, log)
	if err != nil {
		t.Fatal(err)
	}
	g, err := db.Leases().Acquire(t.Context(), lock.Request{Key: "order-observer-poll", Region: "DEFAULT", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	c, err := db.Store(g).Cursor(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	ch := observer.Chunk{Before: c}
	c.Low, c.Newest = "99", "99"
	ch.Advance(c)
	if _, err := db.Store(g).Commit(t.Context(), ch); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Sweeps().Start(t.Context(), observer.Sweep{Stream: "orders", Kind: observer.SweepReconcile, Before: "999"}, lockdb.By{Actor: "test"}); err != nil {
		t.Fatal(err)
	}
	s := scheduled{
		Poller: p, db: db, log: log, backoff: &stepBackoff{}, found: prometheus.NewCounter(prometheus.CounterOpts{Name: "found"}),
	}
	for range 2 {
		s.reconcile(t.Context(), g, &observer.Stats{})
	}
	if src.asked != 1 {
		t.Errorf("%d steps in two turns", src.asked)
	}
	for i, grown := range []time.Duration{reconcileGrace, 2 * reconcileGrace} {
		s.backoff.until, src.fault = time.Time{}, errReconcileTimeout
		s.reconcile(t.Context(), g, &observer.Stats{})
		if src.asked != i+2 || src.given > grown || src.given < grown*9/10 {
			t.Errorf("%d steps; the last had %v, want %v", src.asked, src.given, grown)
		}
	}
}
