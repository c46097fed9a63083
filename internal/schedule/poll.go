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

// poll polls the observers of the type, side by side, and takes the turn when all
// of them have ended, with success or not.
func (r *run) poll(lease *lock.Lease, state turn.State, known map[string]turn.Stream) {
	ctx := lease.Context()
	began, started := time.Now(), r.clock.now()
	r.typ.Activity.record(active)
	defer r.typ.Activity.record(active)
	var due []*observerPoll
	for _, o := range r.typ.Observers {
		last, fresh := known[o.ID()], r.fresh.of[[2]string{r.typ.Name, o.ID()}]
		fresh.stored(last, state.Now)
		if r.ready(ctx, o, last, state) {
			due = append(due, &observerPoll{
				run: r, observer: o, last: last, delay: r.typ.delay(o.ID()), fresh: fresh, log: r.log.With("observer", o.ID()),
			})
		}
	}
	all := r.work(ctx, lease.Grant(), due)
	all.report(r, time.Since(began))
	if all.complete() {
		r.take(ctx, lease.Grant(), started, all.outcome())
	}
}

// work polls the observers until each of them is done. An observer that is to be
// polled again goes to the end of the queue: neither a slow observer nor one with a
// backlog keeps the others from their polls.
func (r *run) work(ctx context.Context, g lock.Grant, due []*observerPoll) *results {
	all := &results{observers: len(due)}
	queue := make(chan *observerPoll, len(due)) // Room for all: to queue again never blocks.
	var open sync.WaitGroup
	for _, p := range due {
		open.Add(1)
		queue <- p
	}
	var workers sync.WaitGroup
	for range min(r.opts.Concurrency, len(due)) {
		workers.Go(func() {
			for p := range queue {
				if p.done(ctx) {
					open.Done()
					continue
				}
				if res, polled := p.poll(ctx, g); polled {
					all.add(res)
				}
				queue <- p
			}
		})
	}
	open.Wait()
	close(queue)
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

// ready reports whether the observer is to be polled: it is not paused, has neither a
// delay nor a backoff to wait for, and was not polled by another node in this turn.
func (r *run) ready(ctx context.Context, o Observer, last turn.Stream, state turn.State) bool {
	now := later(r.at, state.Now) // the job may have come a moment early
	polled := !last.At.Before(r.at) || r.typ.tooSoon(last, o.ID(), r.at)
	polled = polled && !r.tooFarAhead(last.At, state.Now)
	last.Stream = o.ID() // It is empty for one that was never polled.
	r.metrics.showPause(r.typ.Name, last)
	return !last.Paused && !polled && !r.inBackoff(ctx, o, last, now)
}

// take records that the turn was taken. The lease's context may be about to end, so
// the write has a context of its own; the fence decides whether it counts.
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

// recovering polls and turns a panic into an error, so that a defect in one observer
// does not stop the others.
func (p *observerPoll) recovering(ctx context.Context, g lock.Grant) (stats observer.Stats, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = p.panicked(v)
		}
	}()
	return p.observer.Poll(ctx, g)
}
