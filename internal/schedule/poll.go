package schedule

import (
	"context"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

// poll polls the observers of the type, side by side, and takes the turn once
// each of them has ended one way or the other.
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
	all := r.work(ctx, lease.Grant(), due)
	all.report(r, time.Since(began))
	if all.complete() {
		r.take(ctx, lease.Grant(), started, all.outcome())
	}
}

// work polls the parts until each of them has ended. One that is to be polled
// again stands in line behind those that wait: neither a slow neighbour nor one
// with a backlog keeps the others from their polls.
func (r *run) work(ctx context.Context, g lock.Grant, parts []*part) *sum {
	all := &sum{observers: len(parts)}
	line := make(chan *part, len(parts)) // Room for all: to stand in line again never blocks.
	var open sync.WaitGroup
	for _, p := range parts {
		open.Add(1)
		line <- p
	}
	var workers sync.WaitGroup
	for range min(r.opts.Concurrency, len(parts)) {
		workers.Go(func() {
			for p := range line {
				if p.ended(ctx) {
					open.Done()
					continue
				}
				all.add(p.poll(ctx, g))
				line <- p
			}
		})
	}
	open.Wait()
	close(line)
	workers.Wait()
	return all
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

// ready reports whether the observer is to be polled: it is not paused, has no
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
		r.log.Error("Turn not taken; another node may repeat it", "err", err, "tick", r.at)
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
