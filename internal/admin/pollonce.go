package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/internal/wiring"
)

// cleanupTimeout bounds the cleanup of a command whose time is over.
const cleanupTimeout = 5 * time.Second

// Polled is the result of one poll at a person's request.
type Polled struct {
	Observer string        `json:"observer"`
	Lock     string        `json:"lock"`
	Fence    int64         `json:"fence"`
	Outcome  turn.Outcome  `json:"outcome"`
	Rows     int64         `json:"rows"`
	Events   int64         `json:"events"`
	Poison   int64         `json:"poison_rows"`
	Took     time.Duration `json:"took_ms"`
}

// PollOnce polls an observer now, under the lock of its type, and does not change
// the type's turn: the cluster polls when it would have. The error names the holder
// when another node holds the lock. The commits of a failed poll stay, and Polled
// counts them. The audit table has who did it.
func (op *Operator) PollOnce(ctx context.Context, id string, by By) (_ Polled, err error) {
	o, src, err := op.sourceOf(id)
	if err != nil {
		return Polled{}, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if err := op.ready(ctx); err != nil {
		return Polled{}, err
	}
	if err := op.checkPaused(ctx, id); err != nil {
		return Polled{}, err
	}
	d, err := op.definition(ctx, o, src)
	if err != nil {
		return Polled{}, err
	}
	p, err := wiring.NewPoller(o, d, src, op.db, op.log)
	if err != nil {
		return Polled{}, err
	}
	var done Polled
	err = op.underLease(ctx, o, func(ctx context.Context, g lock.Grant) (err error) {
		done, err = op.pollUnder(ctx, g, o, p, by)
		return err
	})
	return done, err
}

// definition is that of a command, which may change the definition only where no node
// runs.
func (op *Operator) definition(ctx context.Context, o config.Observer, src *access.Source) (wiring.Definition, error) {
	d := wiring.Definition{Hash: wiring.DefinitionHash(o, src)}
	nodes, err := op.db.Nodes().Nodes(ctx, time.Minute)
	if err != nil || len(nodes) > 0 {
		return d, err
	}
	at, err := wiring.LoadedAt(ctx, op.db, op.cfg)
	d.Loaded = func() time.Time { return at }
	return d, err
}

// underLease calls do while this process holds the lock of the observer's type.
func (op *Operator) underLease(ctx context.Context, o config.Observer, do func(context.Context, lock.Grant) error) error {
	return op.withKeeper(ctx, func(keeper *lock.Keeper) error {
		t := wiring.TypeOf(op.cfg, o)
		lease, err := keeper.AcquireWithin(ctx, wiring.TypeLockRequest(t, op.cfg.Node.Name), t.Wait)
		if held, ok := errors.AsType[*lock.HeldError](err); ok && held.Left > 0 {
			return fmt.Errorf("%w, for %v more unless it is renewed; try again", err, held.Left.Round(time.Second))
		}
		if err != nil {
			return err
		}
		return do(lease.Context(), lease.Grant())
	})
}

// withKeeper calls do with a keeper of locks, which releases the leases at the end.
func (op *Operator) withKeeper(ctx context.Context, do func(*lock.Keeper) error) error {
	keeper := lock.NewKeeper(lock.KeeperOptions{Provider: op.db.Leases(), Logger: op.log.With("component", "lock")})
	err := do(keeper)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return errors.Join(err, keeper.Close(closing))
}

// pollUnder polls once, outside the schedule, and adds the poll to the history.
func (op *Operator) pollUnder(ctx context.Context, g lock.Grant, o config.Observer, p *wiring.Poller, by By) (Polled, error) {
	if err := op.db.Operations().Note(ctx, lockdb.Did(by, "poll", o.ID, "")); err != nil {
		return Polled{}, err
	}
	began := time.Now()
	stats, err := p.Poll(ctx, g)
	done := Polled{
		Observer: o.ID, Lock: g.Name, Fence: g.Fence, Outcome: schedule.OutcomeOf(err),
		Rows: stats.Rows, Events: stats.Events, Poison: stats.Poison, Took: time.Since(began),
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return done, errors.Join(err, op.recordPoll(ctx, g, o.Type, done, err))
}

// recordPoll adds the poll to the history. The observer's turn and its backoff are
// left to the scheduler; a poll that went well ends the backoff.
func (op *Operator) recordPoll(ctx context.Context, g lock.Grant, typ string, done Polled, cause error) error {
	now, err := op.db.Now(ctx)
	if err != nil {
		return err
	}
	taken := turn.StreamTaken{
		Stream: done.Observer, Type: typ, Node: op.cfg.Node.Name, At: now, Started: now.Add(-done.Took), Finished: now,
		Outcome: done.Outcome, Rows: done.Rows, Events: done.Events, Poison: done.Poison, Left: true,
	}
	if cause != nil {
		known, err := op.db.Turns().Streams(ctx, []string{taken.Stream})
		if err != nil {
			return err
		}
		before := known[taken.Stream]
		taken.Reason = schedule.Reason(cause)
		taken.Failures, taken.FailureClass, taken.RetryAt = before.Failures, before.FailureClass, before.RetryAt
	}
	err = op.db.Turns().NoteStream(ctx, g, taken)
	if errors.Is(err, lock.ErrFenced) {
		return nil // The node that holds the lease now writes the history.
	}
	return err
}
