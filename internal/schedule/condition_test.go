package schedule_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
)

// answers is a poll that ends as the statistics say, or with an error. A full one takes
// ten seconds, as it is followed by others until the next tick.
type answers struct {
	stats atomic.Pointer[observer.Stats]
	down  atomic.Bool
}

func (a *answers) poll(context.Context, lock.Grant) (observer.Stats, error) {
	if a.down.Load() {
		return observer.Stats{}, errors.New("broken")
	}
	stats := *a.stats.Load()
	if stats.Full {
		time.Sleep(10 * time.Second)
	}
	return stats, nil
}

func answering(s observer.Stats) *answers {
	a := &answers{}
	a.stats.Store(&s)
	return a
}

// freshness is what the node says of order-1, and whether it says something.
func (n *node) freshness(t *testing.T) (seconds float64, known bool) {
	t.Helper()
	families, err := n.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "observerd_observer_freshness_seconds" {
			return family.GetMetric()[0].GetGauge().GetValue(), true
		}
	}
	return 0, false
}

// fresh complains unless the stream is as old as that, to a second.
func fresh(t *testing.T, what string, n *node, want time.Duration) {
	t.Helper()
	got, known := n.freshness(t)
	if !known || got < want.Seconds()-1 || got > want.Seconds()+1 {
		t.Errorf("%s: complete %v seconds ago (known: %t), want %v", what, got, known, want)
	}
}

func unknown(t *testing.T, what string, n *node) {
	t.Helper()
	if got, known := n.freshness(t); known {
		t.Errorf("%s: complete %v seconds ago, want nothing", what, got)
	}
}

func TestFreshnessGrowsWhilePollsFail(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		source := answering(observer.Stats{HorizonLag: time.Minute})
		a := start(t, db, "a", only("order"), does("order-1", source.poll))
		pass(10 * time.Second)
		fresh(t, "after a poll", a, time.Minute+10*time.Second)
		source.down.Store(true)
		pass(10 * time.Minute)
		fresh(t, "while polls fail", a, 11*time.Minute+10*time.Second)
		source.down.Store(false)
		pass(10 * time.Minute)
		if got, _ := a.freshness(t); got > 100 {
			t.Errorf("complete %v seconds ago, though polls succeed", got)
		}
	})
}

// TestFreshnessOfAnotherNode is of a node that takes over, or was restarted, while the
// source is away.
func TestFreshnessOfAnotherNode(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		source := answering(observer.Stats{})
		a := start(t, db, "a", only("order"), does("order-1", source.poll))
		pass(time.Second)
		a.stop(t)
		source.down.Store(true)
		pass(20 * time.Minute)
		b := start(t, db, "b", only("order"), does("order-1", source.poll))
		pass(interval)
		fresh(t, "after a turn without success", b, 20*time.Minute+interval+time.Second)
	})
}

// TestFreshnessOfNodesThatTakeTurns has a transaction that is open in the source for an
// hour: a success of another node does not hide it.
func TestFreshnessOfNodesThatTakeTurns(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		source := answering(observer.Stats{HorizonLag: time.Hour})
		a := start(t, db, "a", only("order"), does("order-1", source.poll))
		b := start(t, db, "b", only("order"), does("order-1", source.poll))
		pass(10*interval + interval/2)
		source.down.Store(true) // So each learns of the other from the database alone.
		pass(4 * interval)
		for _, n := range []*node{a, b} {
			if got, known := n.freshness(t); !known || got < time.Hour.Seconds() || got > time.Hour.Seconds()+8*interval.Seconds() {
				t.Errorf("complete %v seconds ago (known: %t), want an hour and some intervals", got, known)
			}
		}
	})
}

// TestFreshnessAfterAPollThatWasNotNoted has a poll far behind the source whose end the database
// did not learn of: what another node has noted since counts as it stands there.
func TestFreshnessAfterAPollThatWasNotNoted(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		source := answering(observer.Stats{HorizonLag: time.Hour})
		a := start(t, db, "a", only("order"), does("order-1", func(ctx context.Context, g lock.Grant) (observer.Stats, error) {
			if !source.down.Load() {
				db.locks.Expire(g)
			}
			return source.poll(ctx, g)
		}))
		pass(10 * time.Second)
		source.down.Store(true)
		db.set(func(m *memory) { m.streams["order-1"] = turn.Stream{Stream: "order-1", OKAt: m.now()} })
		pass(2 * interval)
		if got, known := a.freshness(t); !known || got > 2*interval.Seconds() {
			t.Errorf("complete %v seconds ago (known: %t), want two intervals", got, known)
		}
	})
}

func TestFreshnessIsUnknown(t *testing.T) {
	full := observer.Stats{Rows: 1, Full: true, Lag: 1000 * time.Hour}
	for name, c := range map[string]struct {
		stream turn.Stream
		stats  observer.Stats
		want   bool
	}{
		"in a first load":                {turn.Stream{}, full, false},
		"in a first load that goes on":   {turn.Stream{OKAt: start2000().Add(-time.Minute), Lag: time.Hour}, full, false},
		"while it is paused":             {turn.Stream{OKAt: start2000().Add(-time.Minute), Paused: true}, observer.Stats{}, false},
		"of all rows, read in part":      {turn.Stream{}, observer.Stats{Rows: 1, Full: true}, false},
		"not when it was complete":       {turn.Stream{OKAt: start2000().Add(-time.Minute)}, full, true},
		"not after a first poll is done": {turn.Stream{}, observer.Stats{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, db *memory) {
				if c.stream != (turn.Stream{}) {
					c.stream.Stream = "order-1"
					db.streams["order-1"] = c.stream
				}
				a := start(t, db, "a", only("order"), does("order-1", answering(c.stats).poll), func(o *schedule.Options) { o.Types[0].PollTimeout = time.Minute })
				pass(15 * time.Second)
				if _, known := a.freshness(t); known != c.want {
					t.Errorf("known: %t, want %t", known, c.want)
				}
			})
		})
	}
}

// TestFreshnessWhileItCatchesUp follows the rows of a stream that was complete before.
func TestFreshnessWhileItCatchesUp(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		source := answering(observer.Stats{})
		a := start(t, db, "a", only("order"), does("order-1", source.poll))
		pass(time.Second)
		source.stats.Store(&observer.Stats{Rows: 1, Full: true, Lag: 2 * time.Hour})
		pass(interval + 15*time.Second)
		if got, known := a.freshness(t); !known || got < 7200 || got > 7200+interval.Seconds() {
			t.Errorf("complete %v seconds ago (known: %t), want two hours", got, known)
		}
		source.stats.Store(&observer.Stats{})
		pass(2 * interval)
		if got, _ := a.freshness(t); got > interval.Seconds() {
			t.Errorf("complete %v seconds ago, though it has caught up", got)
		}
		db.set(func(m *memory) { m.streams["order-1"] = turn.Stream{Stream: "order-1"} }) // as after a reset
		source.stats.Store(&observer.Stats{Rows: 1, Full: true, Lag: 1000 * time.Hour})
		pass(interval)
		unknown(t, "after a reset", a)
	})
}
