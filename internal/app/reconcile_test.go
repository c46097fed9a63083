package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/observer"
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

func TestBudgets(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ got, want observer.Budget }{
		"a step":               {stepBudget(30*time.Second, 0), observer.Budget{Rows: stepRows, Time: stepTime}},
		"of a short interval":  {stepBudget(time.Second, 0), observer.Budget{Rows: stepRows, Time: 250 * time.Millisecond}},
		"throttled":            {stepBudget(30*time.Second, 1000), observer.Budget{Rows: 2000, Time: stepTime}},
		"a drop at a time":     {stepBudget(30*time.Second, 0.1), observer.Budget{Rows: 1, Time: stepTime}},
		"a reconcile":          {reconcileBudget(30*time.Second, 0), observer.Budget{Rows: stepRows, Time: 7500 * time.Millisecond}},
		"of a short interval ": {reconcileBudget(time.Second, 0), observer.Budget{Rows: stepRows, Time: time.Second}},
		"throttled ":           {reconcileBudget(20*time.Second, 100), observer.Budget{Rows: 500, Time: 5 * time.Second}},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, tc.got, tc.want)
		}
	}
}

// TestSetback holds the pauses after failures against the time.
func TestSetback(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s setback
		for _, minutes := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
			pause := time.Duration(minutes) * time.Minute
			if s.lasts() {
				t.Fatal("it lasts at the time of the next try")
			}
			s.note(true)
			time.Sleep(pause - time.Second)
			if !s.lasts() {
				t.Fatalf("it is over before %v", pause)
			}
			time.Sleep(time.Second)
		}
		s.note(true)
		if got := s.grown(time.Minute); got != mostGrown {
			t.Errorf("after many failures a step may take %v", got)
		}
		s.note(false)
		if s.lasts() || s.grown(time.Second) != time.Second {
			t.Error("a step that got on did not end it")
		}
	})
}

// broken is a source that says nothing of itself, counts who asks, and notes the time
// that it is given.
type broken struct {
	counted
	given *time.Duration
}

func (b broken) Identity(ctx context.Context) (string, error) {
	*b.asked++
	if end, ok := ctx.Deadline(); ok {
		*b.given = time.Until(end)
	}
	return "", errors.New("broken")
}

// TestReconcileThatFailsIsLeftAlone takes two turns of a reconcile that fails, and one
// after the pause, which has more time.
func TestReconcileThatFailsIsLeftAlone(t *testing.T) {
	t.Parallel()
	asked := 0
	var given time.Duration
	src := broken{counted{asked: &asked}, &given}
	b := backfilling(t, "99", src)
	if _, err := b.op.db.Sweeps().Start(t.Context(), observer.Sweep{Stream: "orders", Kind: observer.SweepReconcile, Before: "999"}, "test"); err != nil {
		t.Fatal(err)
	}
	g, err := b.op.db.Leases().Acquire(t.Context(), typeRequest(b.typ, "test"))
	if err != nil {
		t.Fatal(err)
	}
	s := scheduled{
		poller:  &poller{id: "orders", observer: b.observer, source: src, db: b.op.db, log: b.op.log},
		setback: &setback{}, found: prometheus.NewCounter(prometheus.CounterOpts{Name: "found"}),
	}
	for range 2 {
		s.reconcile(t.Context(), g, &observer.Stats{})
	}
	if asked != 1 {
		t.Errorf("%d steps in two turns", asked)
	}
	first := given
	s.setback.until = time.Time{}
	s.reconcile(t.Context(), g, &observer.Stats{})
	if asked != 2 || given <= first {
		t.Errorf("%d steps; the second had %v after %v", asked, given, first)
	}
}
