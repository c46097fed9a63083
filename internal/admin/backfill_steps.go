package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/internal/wait"
	"github.com/observerd/observerd/internal/wiring"
)

const (
	// stepTime bounds a step, so that polls come in between.
	stepTime = 2 * time.Second
	// leastStep is the least time of a step, of a type that is polled often.
	leastStep = 200 * time.Millisecond
	// lookAgain is the time between two looks at a turn that is not taken yet.
	lookAgain = 100 * time.Millisecond
	// idleFor bounds the time between two steps of which the first could do
	// nothing: another node holds the lock, or the source was replaced and the polls
	// have no low-water mark yet.
	idleFor = 5 * time.Second
	// maxRefused is how often in a row a step may be refused its commit before the
	// backfill ends with the error.
	maxRefused = 5
)

// errStepTimeout is the cause that ends a step which takes as long as a poll may.
var errStepTimeout = errors.New("a step of the backfill took longer than poll-timeout; is there an index that serves the order?")

// backfill is a running backfill.
type backfill struct {
	op       *Operator
	options  BackfillOptions
	observer *observer.Observer
	source   observer.Source
	typ      config.Type
	budget   observer.Budget

	sweep observer.Sweep
	// first is the first position that was seen, for the part that is done.
	first string
}

// run takes steps until the sweep has ended.
func (b *backfill) run(ctx context.Context) (Backfill, error) {
	b.report("")
	err := b.op.withKeeper(ctx, func(keeper *lock.Keeper) error {
		for refused := 0; b.sweep.State == observer.SweepRunning; {
			err := b.next(ctx, keeper)
			if ctx.Err() != nil && b.sweep.State != observer.SweepDone { // Whatever the database made of that.
				return fmt.Errorf("%w; the backfill continues when it is called again", context.Cause(ctx))
			}
			if err == nil {
				refused = 0
				continue
			}
			// A refused step has written nothing; the next one reads the sweep again.
			if refused++; !retryable(err) || refused >= maxRefused {
				return err
			}
		}
		return nil
	})
	return b.now(), err
}

// next takes a step when the polls leave room for it, and waits after a step that did
// nothing.
func (b *backfill) next(ctx context.Context, keeper *lock.Keeper) error {
	if err := b.op.giveWay(ctx, b.typ, b.budget.Time, func() { b.report("the type is polled first") }); err != nil {
		return err
	}
	before := b.sweep
	if err := b.step(ctx, keeper); err != nil || wiring.SweepAdvanced(before, b.sweep) {
		return err
	}
	wait.For(ctx, min(b.typ.Interval, idleFor))
	return ctx.Err()
}

// retryable reports whether a step was refused its commit, but the next may not be.
func retryable(err error) bool {
	return errors.Is(err, lock.ErrFenced) || errors.Is(err, lock.ErrLost) || errors.Is(err, observer.ErrConflict)
}

// step takes one step under the lock of the type. While another holds it, it
// takes none.
func (b *backfill) step(ctx context.Context, keeper *lock.Keeper) (err error) {
	lease, err := keeper.AcquireWithin(ctx, wiring.TypeLockRequest(b.typ, b.op.cfg.Node.Name), b.typ.Wait)
	switch held, is := errors.AsType[*lock.HeldError](err); {
	case is:
		b.report("the lock is held by " + cmp.Or(held.Node, "another"))
		return nil
	case err != nil:
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		if released := lease.Release(ctx); err == nil && !retryable(released) {
			err = released
		}
	}()
	// Another process may have taken steps, or have ended the sweep.
	if b.sweep, err = wiring.LastSweep(ctx, b.op.db, b.sweep.Stream, observer.SweepBackfill); err != nil || b.sweep.State != observer.SweepRunning {
		return err
	}
	if err := b.op.checkPaused(lease.Context(), b.sweep.Stream); err != nil {
		return err
	}
	err = b.sweepOn(lease)
	b.first = cmp.Or(b.first, b.sweep.From, b.sweep.Position)
	b.report("")
	return err
}

// sweepOn takes the step. A step that reaches the time limit of a poll keeps the lock
// from the polls. Its commits stay, so it is a failure only if it made no progress.
func (b *backfill) sweepOn(lease *lock.Lease) (err error) {
	limited, cancel := context.WithTimeoutCause(lease.Context(), b.typ.Observers[0].PollTimeout, errStepTimeout)
	defer cancel()
	before := b.sweep
	b.sweep, _, err = b.observer.Sweep(limited, b.source, b.op.db.Store(lease.Grant()), b.sweep, b.budget)
	if errors.Is(err, errStepTimeout) && wiring.SweepAdvanced(before, b.sweep) {
		return nil
	}
	return err
}

// checkPaused refuses to go on with an observer that is paused.
func (op *Operator) checkPaused(ctx context.Context, id string) error {
	known, err := op.db.Turns().Streams(ctx, []string{id})
	if err != nil || !known[id].Paused {
		return err
	}
	until := ""
	if end := known[id].PausedUntil; !end.IsZero() {
		until = " until " + end.Format(time.RFC3339)
	}
	return fmt.Errorf("observer %[1]s is paused%[2]s; 'observerd observers resume %[1]s' ends that", id, until)
}

// stepBudget bounds a step to a quarter of the interval, and to the rate.
func stepBudget(interval time.Duration, rate float64) observer.Budget {
	return wiring.SweepBudget(stepOf(interval), rate)
}

// stepOf bounds a step for a type with this interval.
func stepOf(interval time.Duration) time.Duration { return min(stepTime, max(interval/4, leastStep)) }

// giveWay waits before a step of that length while the turn of the type is due and not
// taken: the lock is for the polls then. It waits for a turn that no node takes once an
// interval at most. waits is called while it does.
func (op *Operator) giveWay(ctx context.Context, typ config.Type, step time.Duration, waits func()) error {
	request := wiring.TypeLockRequest(typ, op.cfg.Node.Name)
	for began := time.Now(); ; {
		nodes, err := op.db.Nodes().Nodes(ctx, time.Minute)
		if err != nil || !slices.ContainsFunc(nodes, func(n turn.Node) bool { return slices.Contains(n.Types, typ.Name) }) {
			return err
		}
		state, err := op.db.Turns().Turn(ctx, typ.Name, request)
		if err != nil {
			return err
		}
		pause := lookAgain
		since := time.Duration(state.Now.UnixNano() % int64(typ.Interval))
		taken := !state.At.Before(state.Now.Add(-since))
		switch left := typ.Interval - since; {
		case time.Since(began) > typ.Interval:
			return nil
		case taken && left > step:
			return nil
		case taken:
			pause = left
		}
		waits()
		if !wait.For(ctx, pause) {
			return ctx.Err()
		}
	}
}

func (b *backfill) now() Backfill { return newBackfill(b.sweep, b.first) }

func (b *backfill) report(waiting string) {
	if b.options.Progress == nil {
		return
	}
	now := b.now()
	now.Waiting = waiting
	b.options.Progress(now)
}
