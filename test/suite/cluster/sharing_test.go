package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
)

func TestNodesShareTheTypes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		nodes       []string
		least, most int
	}{
		"one takes all three":        {[]string{"a"}, 3, 3},
		"two take two and one":       {[]string{"a", "b"}, 1, 2},
		"three take one each":        {[]string{"a", "b", "c"}, 1, 1},
		"four leave one without any": {[]string{"a", "b", "c", "d"}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, m memory) {
				var nodes []*node
				for _, name := range tc.nodes {
					nodes = append(nodes, join(t, m, name, idlers()...))
				}
				eventually(t, func() error { return m.shared(t, 4, tc.nodes, tc.least, tc.most, 3) })
				if err := polledTwice(m.mustPolls(t)); err != nil {
					t.Error(err)
				}
				for _, n := range nodes {
					n.leave(t)
				}
				if err := noLockOfATypeIsLeft(t, m); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestSecondNodeSkipsWhatTheFirstHolds lets the poll of one type last for some
// turns, while a stranger holds the lock of another: each costs its own type
// and no other.
func TestSecondNodeSkipsWhatTheFirstHolds(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		polls, release := make(chan struct{}), make(chan struct{})
		long := acts("order", func(ctx context.Context, _ lock.Grant) error {
			select {
			case polls <- struct{}{}:
			case <-release:
				return nil
			}
			<-release
			return nil
		})
		a := join(t, m, "a", idle("inventory"), long, idle("wes"))
		received(t, polls, "the poll of a")
		var grant lock.Grant
		eventually(t, func() (err error) { // a may be polling the type at this moment.
			grant, err = a.db.Leases().Acquire(t.Context(), request("inventory", "stranger", time.Minute))
			return err
		})
		before := make(map[polled]bool) // Polls are not committed in the order of their ids.
		for _, p := range m.mustPolls(t) {
			before[p] = true
		}
		b := join(t, m, "b", idle("inventory"), idle("order"), idle("wes"))
		eventually(t, func() error { return m.shared(t, 3, []string{"a", "b"}, 0, 1, 1) })
		for _, typ := range []string{"order", "inventory"} {
			eventually(t, func() error {
				if b.count(t, "scheduler_observer_lock_failed_total", typ) == 0 {
					return fmt.Errorf("b never met the holder of the lock of %s", typ)
				}
				return nil
			})
		}
		for _, p := range m.mustPolls(t) {
			if p.typ != "wes" && !before[p] {
				t.Errorf("%s was polled by %s while another held its lock", p.typ, p.node)
			}
		}
		close(release)
		if err := a.db.Leases().Release(t.Context(), grant); err != nil {
			t.Error(err)
		}
		eventually(t, func() error { return m.shared(t, 3, []string{"a", "b"}, 1, 2, 3) })
		if err := polledTwice(m.mustPolls(t)); err != nil {
			t.Error(err)
		}
	})
}

// TestLockIsReleasedAfterAFailure fails a poll by an error and by a panic: the
// lock is free again, and the other types do not notice.
func TestLockIsReleasedAfterAFailure(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(context.Context, lock.Grant) error{
		"error": func(context.Context, lock.Grant) error { return errors.New("the poll has failed") },
		"panic": func(context.Context, lock.Grant) error { panic("the poll has a mistake") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, m memory) {
				n := join(t, m, "a", idle("inventory"), acts("order", fail), idle("wes"))
				eventually(t, func() error {
					polls := m.mustPolls(t)
					of := func(typ, outcome string) int {
						return len(selected(polls, func(p polled) bool { return p.typ == typ && p.outcome == outcome }))
					}
					if of("order", string(turn.Error)) < 2 || of("wes", string(turn.OK)) < 3 || of("inventory", string(turn.OK)) < 3 {
						return fmt.Errorf("polls so far: %v", polls)
					}
					return nil
				})
				if n.count(t, "scheduler_observer_polls_total", "order") == 0 {
					t.Error("the failure was not counted")
				}
				n.leave(t)
				if err := noLockOfATypeIsLeft(t, m); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestNodeWithoutASourceLosesNoTurn(t *testing.T) {
	t.Parallel()
	const turns = 12
	onBoth(t, func(t *testing.T, m memory) {
		reach := func(reachable bool) job {
			return job{name: "order", observers: func(n *node) []schedule.Observer {
				far := func(context.Context, lock.Grant) error {
					if reachable {
						return nil
					}
					return fmt.Errorf("connect: %w", observer.ErrUnreachable)
				}
				return []schedule.Observer{does{node: n, id: "order-near"}, does{node: n, id: "order-far", poll: far}}
			}}
		}
		a := join(t, m, "a", reach(false))
		join(t, m, "b", reach(true))
		// From here on both are there.
		eventually(t, func() error {
			seen := make(map[string]bool)
			for _, p := range m.mustPolls(t) {
				seen[p.node] = true
			}
			if !seen["a"] || !seen["b"] {
				return errNothingYet
			}
			return nil
		})
		began := len(m.mustPolls(t))
		// Nobody takes turns while the machine stands still: that is not the source.
		eventually(t, func() error {
			since := selected(m.mustPolls(t)[began:], func(p polled) bool { return p.outcome == string(turn.OK) })
			if n := len(lastTurns(since, turns+1)); n <= turns {
				return fmt.Errorf("%d turns so far", n)
			}
			return lostTurn(since, turns, "order-near", "order-far")
		})
		if a.count(t, "scheduler_observer_polls_total", "order") == 0 {
			t.Fatal("a never tried: the test proves nothing")
		}
		if err := polledTwice(m.mustPolls(t)); err != nil {
			t.Error(err)
		}
	})
}

// lostTurn complains unless each stream was polled in each of the last turns, which
// follow one another.
func lostTurn(polls []polled, turns int, streams ...string) error {
	last := lastTurns(polls, turns)
	for i, at := range last {
		if i > 0 && at-last[i-1] != interval.Milliseconds() {
			return fmt.Errorf("the turn at %d follows that at %d", at, last[i-1])
		}
		for _, stream := range streams {
			if of := selected(polls, func(p polled) bool { return p.at == at && p.stream == stream }); len(of) != 1 {
				return fmt.Errorf("%s was polled %d times at %d", stream, len(of), at)
			}
		}
	}
	return nil
}

func TestIntervalChangesAndChangesBack(t *testing.T) {
	t.Parallel()
	const short, long = 2 * time.Second, 4 * time.Second
	onBoth(t, func(t *testing.T, m memory) {
		for _, every := range []time.Duration{short, long, short} {
			var nodes []*node
			for _, name := range []string{"a", "b"} {
				order := idle("order")
				order.interval = every
				nodes = append(nodes, join(t, m, name, order))
			}
			before := len(m.mustPolls(t))
			eventually(t, func() error { // Nobody takes turns while the machine stands still.
				turns := lastTurns(m.mustPolls(t)[before:], 3)
				if len(turns) < 3 {
					return fmt.Errorf("%d turns at an interval of %s so far", len(turns), every)
				}
				for i, at := range turns[1:] {
					if d := at - turns[i]; d != every.Milliseconds() {
						return fmt.Errorf("at an interval of %s, the turn at %d follows that at %d", every, at, turns[i])
					}
				}
				return nil
			})
			for _, p := range m.mustPolls(t)[before:] {
				if p.at%every.Milliseconds() != 0 {
					t.Errorf("at an interval of %s there was a turn at %d", every, p.at)
				}
			}
			for _, n := range nodes {
				n.leave(t)
			}
		}
		if err := polledTwice(m.mustPolls(t)); err != nil {
			t.Error(err)
		}
	})
}
