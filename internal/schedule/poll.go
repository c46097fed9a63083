package schedule

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

// poll polls the observers of the type, side by side, and takes the turn once
// each of them has ended one way or the other. An observer with a backlog is polled
// again until the next instant, which may be another node's.
func (r *run) poll(lease *lock.Lease, state turn.State, known map[string]turn.Stream) {
	ctx := lease.Context()
	began, started := time.Now(), r.clock.now()
	r.typ.Progress.note(active)
	defer r.typ.Progress.note(active)
	var due []*part
	for _, o := range r.typ.Observers {
		if was := known[o.ID()]; r.ready(ctx, o, was, state) {
			due = append(due, &part{run: r, observer: o, was: was, log: r.log.With("observer", o.ID())})
		}
	}
	all := sum{observers: len(due)}
	for len(due) > 0 {
		round := time.Now()
		var group errgroup.Group
		group.SetLimit(r.opts.Concurrency)
		for _, p := range due {
			group.Go(func() error {
				all.add(p.poll(ctx, lease.Grant()))
				return nil
			})
		}
		_ = group.Wait() // parts return no error: each notes its own
		due = r.unfinished(ctx, due, time.Since(round))
	}

	all.report(r, time.Since(began))
	if all.complete() {
		r.take(ctx, lease.Grant(), started, all.outcome())
	}
}

// unfinished are the parts whose last poll has left rows behind, while there is
// time for another that takes as long: the next instant may be another node's, which
// must not find the lock held.
func (r *run) unfinished(ctx context.Context, parts []*part, took time.Duration) []*part {
	if ctx.Err() != nil || !r.clock.now().Add(took).Before(r.at.Add(r.typ.Interval)) {
		return nil
	}
	return slices.DeleteFunc(parts, func(p *part) bool { return !p.full })
}

func (r *run) streams(ctx context.Context) (map[string]turn.Stream, error) {
	ids := make([]string, len(r.typ.Observers))
	for i, o := range r.typ.Observers {
		ids[i] = o.ID()
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.opts.Store.Streams(ctx, ids)
}

// ready tells whether the observer is to be polled: it is not paused, has no
// backoff to wait for, and was not polled by an earlier node of this turn.
func (r *run) ready(ctx context.Context, o Observer, was turn.Stream, state turn.State) bool {
	now := state.Now
	if now.Before(r.at) {
		now = r.at // the job came a moment early
	}
	polled := !was.At.Before(r.at) && !r.absurd(was.At, state.Now)
	set(r.metrics.paused, r.typ.Name, o.ID(), was.Paused)
	return !was.Paused && !polled && !r.waits(ctx, o, was, now)
}

// take takes the turn. The lease may be about to end with everything else, so
// the note is on a context of its own; the fence decides whether it counts.
func (r *run) take(ctx context.Context, g lock.Grant, started time.Time, outcome turn.Outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	err := r.opts.Store.TakeTurn(ctx, g, turn.Taken{
		Type: r.typ.Name, At: r.at, Started: started, Finished: r.clock.now(),
		Node: r.opts.Node.Name, Outcome: outcome,
	})
	failpoint.Hit("turn.taken")
	if err != nil {
		r.log.Error("Turn not taken; another node may repeat it", "err", err, "instant", r.at)
	}
}

// safely polls and turns a panic into an error: one observer's mistake is not
// the others'.
func (p *part) safely(ctx context.Context, g lock.Grant) (stats observer.Stats, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = p.panicked(v)
		}
	}()
	return p.observer.Poll(ctx, g)
}
