package balance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/fairness"
	"github.com/observerd/observerd/test/kit/testbed"
)

// Measure runs the clusters and reads who polled what. A goal that is missed is
// a result, not an error.
func Measure(ctx context.Context, o Options) (Figures, error) {
	f := Figures{Cycles: o.Cycles, Cases: make([]Result, len(o.Cases))}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.Lanes)
	for i, c := range o.Cases {
		group.Go(func() (err error) {
			if f.Cases[i], err = measure(ctx, o, c); err != nil {
				return fmt.Errorf("balance of %d nodes and %d types: %w", c.Nodes, c.Types, err)
			}
			return nil
		})
	}
	err := group.Wait()
	return f, err
}

func measure(ctx context.Context, o Options, c Case) (r Result, err error) {
	ctx, cancel := context.WithCancel(ctx) // It kills what is left.
	defer cancel()
	k, err := open(ctx, o.Testbed, c)
	defer func() { err = errors.Join(err, k.close(ctx)) }()
	if err != nil {
		return r, err
	}
	o.Testbed.Progress("balance: %d cycles of %s with %d nodes and %d types", o.Cycles, c.interval(), c.Nodes, c.Types)
	if r, err = k.score(ctx, int64(o.Cycles)); err != nil {
		return r, err
	}
	o.Testbed.Progress("balance: %d nodes and %d types score %.1f, with %.2f attempts for each poll", c.Nodes, c.Types, r.Score, r.Attempts)
	if c.Change {
		r.Changes, err = k.changes(ctx)
	}
	return r, err
}

// score lets cycles pass and counts.
func (k *cluster) score(ctx context.Context, cycles int64) (r Result, err error) {
	first, before, err := k.counted(ctx)
	if err != nil {
		return r, err
	}
	if err := testbed.Wait(ctx, time.Duration(cycles)*k.interval()-k.interval()/2); err != nil {
		return r, err
	}
	last, after, err := k.counted(ctx)
	if err != nil {
		return r, err
	}
	polls, err := k.polls(ctx, first)
	if err != nil {
		return r, err
	}
	s := fairness.Share(polls, k.eligible, first, last)
	r = Result{Case: k.Case, Turns: int(last-first) * k.Types, Polls: s.Sum(), Score: s.Overall()}
	_, r.WorstScore = s.Worst()
	r.Least, r.Most = s.Extremes()
	r.Attempts = (after - before) / math.Max(1, float64(r.Polls))
	return r, nil
}

// changes lets a node come, one die, one come back, and one go.
func (k *cluster) changes(ctx context.Context) (all []Change, err error) {
	for _, change := range []struct {
		what string
		do   func() error
	}{
		{"one comes", func() error { return k.start(ctx, k.Nodes) }},
		{"kill -9 of one", func() error { k.kill(k.nodes[0]); return nil }},
		{"it comes back", func() error { return k.start(ctx, 0) }},
		{"one stops", func() error { return k.stop(ctx, k.nodes[0]) }},
	} {
		c, err := k.change(ctx, change.what, change.do)
		if err != nil {
			return all, fmt.Errorf("%s: %w", change.what, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// changeLimit is how long shares may stay uneven, beside the round in which
// they are found to be even.
const changeLimit = 90 * time.Second

// change does something to the membership and waits until shares are even.
func (k *cluster) change(ctx context.Context, what string, do func() error) (Change, error) {
	c := Change{What: what}
	if err := do(); err != nil {
		return c, err
	}
	at := time.Now()
	present, err := k.cycle(ctx)
	if err != nil {
		return c, err
	}
	err = testbed.Until(ctx, changeLimit+time.Duration(2+k.eligible.Round())*k.interval(), func() error {
		if err := testbed.Wait(ctx, k.interval()/2); err != nil { // Looks are not to be a burden.
			return err
		}
		polls, err := k.polls(ctx, present+1)
		if err != nil {
			return err
		}
		// The present cycle is not over.
		now, err := k.cycle(ctx)
		if err != nil {
			return err
		}
		from, ok := fairness.EvenAgain(polls, k.eligible, present+1, now)
		if !ok {
			return errUneven
		}
		c.Again, c.Cycles, c.After = true, from-present-1, k.tick(from).Sub(at)
		return nil
	})
	if errors.Is(err, errUneven) && ctx.Err() == nil {
		err = nil // That is a result.
	}
	return c, err
}

var errUneven = errors.New("the shares are not even again")

func (k *cluster) kill(node *daemon.Process) {
	k.forget(node)
	node.Kill()
}

func (k *cluster) stop(ctx context.Context, node *daemon.Process) error {
	k.forget(node)
	return testbed.Stop(ctx, node)
}
