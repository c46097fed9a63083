package events_test

import (
	"context"
	"fmt"

	"github.com/observerd/observerd/internal/events"
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
func (r *simRelay) open(ctx context.Context) (*simSink, error) {
	s, err := simtest.Call(ctx, r.wire, "open", "", func(context.Context) (*simSink, error) { return &simSink{relay: r}, nil })
	if err == nil {
		r.sinks = append(r.sinks, s)
	}
	return s, err
}

// simSink is the sink as one relay sees it.
type simSink struct {
	relay  *simRelay
	closed bool
}

func (s *simSink) Deliver(ctx context.Context, batch []events.Event) (int, error) {
	r := s.relay
	r.mu.Lock()
	epoch, mood := r.epoch, r.mood
	r.mu.Unlock()
	r.expect(epoch, s.closed)
	bitten := r.wire.Bites("deliver").Count
	n, err := simtest.Call(ctx, r.wire, "deliver", batch[0].Stream, func(context.Context) (int, error) {
		r.world.journal.Note(r.name, fmt.Sprintf("delivers %s %d to %d", batch[0].Stream, batch[0].Seq, batch[len(batch)-1].Seq))
		return r.world.take(batch, mood)
	})
	if err != nil || r.wire.Bites("deliver").Count != bitten {
		r.world.blame()
	}
	return n, err
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
func (w *simWorld) take(batch []events.Event, mood simMood) (int, error) {
	some := (len(batch) + 1) / 2
	switch mood {
	case fails:
		return 0, errBroken
	case partial:
		w.store(batch[:some])
		return some, errBroken
	case slow:
		w.store(batch[:some])
		return some, nil
	}
	w.store(batch)
	return len(batch), nil
}

func (s *simSink) Close() error {
	s.closed = true
	return nil
}
