package relay_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/test/kit/simtest"
)

// simMood is how the sink treats a node.
type simMood string

const (
	well    simMood = ""
	fails   simMood = "fails"         // stores nothing
	partial simMood = "stores a part" // and says so, with an error
	slow    simMood = "takes a part"  // and wants to be called again
)

// open connects to the sink. What it returns belongs to one term.
func (r *simRelay) open(ctx context.Context, t sink.Term) (sink.Sink, error) {
	s, err := simtest.Call(ctx, r.wire, "open", "", func(context.Context) (*simSink, error) {
		return &simSink{relay: r, term: t, life: r.world.lives(), at: make(map[string]events.Position)}, nil
	})
	if err != nil {
		return nil, err
	}
	r.sinks = append(r.sinks, s)
	if r.world.resumes {
		return &simResumer{s}, nil
	}
	return s, nil
}

// simSink is the sink as one relay sees it.
type simSink struct {
	relay  *simRelay
	term   sink.Term
	closed bool
	// life is that of the target when it was opened, opening when its positions were asked
	// for.
	life, opening int
	// at are the positions of streams that it has read or left.
	at map[string]events.Position
}

func (s *simSink) Deliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	r := s.relay
	r.mu.Lock()
	epoch, mood := r.epoch, r.mood
	r.mu.Unlock()
	r.expect(epoch, s.closed)
	bitten := r.wire.Bites("deliver").Count
	result, err := simtest.Call(ctx, r.wire, "deliver", batch[0].Stream, func(context.Context) (sink.Result, error) {
		for _, end := range events.Ends(batch, uuid.Nil, nil) {
			r.world.journal.Note(r.name, fmt.Sprintf("delivers %s to %d", end.Stream, end.Seq))
		}
		taken, rejected := r.world.refuse(batch)
		n, err := r.world.take(taken, mood, s)
		result := sink.Result{Stored: events.Ends(taken[:n], uuid.Nil, nil), Rejected: rejected}
		for i, end := range result.Stored {
			result.Stored[i] = s.at[end.Stream]
		}
		return result, err
	})
	if err != nil || r.wire.Bites("deliver").Count != bitten {
		r.world.blame()
	}
	return result, err
}

// simResumer is a sink that keeps positions, and loses what it has stored last at times.
type simResumer struct{ *simSink }

func (s *simResumer) Positions(ctx context.Context, streams []string) ([]events.Position, error) {
	return simtest.Call(ctx, s.relay.wire, "positions", "", func(context.Context) (found []events.Position, _ error) {
		w := s.relay.world
		w.mu.Lock()
		defer w.mu.Unlock()
		if s.life != w.life {
			return nil, errBroken
		}
		if s.term.Epoch < w.epoch {
			return nil, &sink.StaleError{Epoch: w.epoch}
		}
		w.epoch = s.term.Epoch
		w.opening++
		s.opening = w.opening
		for _, stream := range streams {
			if steps := w.steps[stream]; len(steps) > 0 {
				s.at[stream] = steps[len(steps)-1].end
				found = append(found, s.at[stream])
			}
		}
		return found, nil
	})
}

// Redeliver stores late events once, whatever the position.
func (s *simResumer) Redeliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	r := s.relay
	return simtest.Call(ctx, r.wire, "redeliver", batch[0].Stream, func(context.Context) (sink.Result, error) {
		taken, rejected := r.world.refuse(batch)
		n, err := r.world.storeLate(taken, s.simSink)
		return sink.Result{Stored: events.Ends(taken[:n], uuid.Nil, nil), Rejected: rejected}, err
	})
}

// expect judges a delivery before it is made.
func (r *simRelay) expect(epoch int64, closed bool) {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	if !r.world.log.claimed[epoch] {
		r.world.brokenLocked("delivered before the sink was claimed")
	}
	if closed {
		r.world.brokenLocked("delivered to a sink that was closed")
	}
}

// take stores as much of the batch as the sink is in the mood for.
func (w *simWorld) take(batch []events.Event, mood simMood, s *simSink) (int, error) {
	some := (len(batch) + 1) / 2
	switch mood {
	case fails:
		return 0, errBroken
	case partial:
		return w.store(batch[:some], s, errBroken)
	case slow:
		return w.store(batch[:some], s, nil)
	}
	return w.store(batch, s, nil)
}

func (s *simSink) Close() error {
	s.closed = true
	return nil
}
