package relay_test

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/test/kit/simtest"
)

// simLog is an event log in memory that keeps the contract of [events.Log].
// The world's mutex guards it.
type simLog struct {
	streams map[string][]events.Event
	// last is the end of each stream, missing what was lost of it, waived what
	// an operator gave up.
	last            map[string]int64
	missing, waived map[string]map[int64]bool
	offsets         map[string]int64
	stored          map[string]events.Position
	adopted         map[string]bool
	epoch           int64
	claimed         map[int64]bool
	// era is part of the ids of some events: they are others when the log has gone
	// back.
	era int64
	// parked are refused events, dropped those of them that an operator gave up.
	parked  parkedEvents
	dropped map[uuid.UUID]bool
}

func newSimLog() *simLog {
	return &simLog{
		streams: make(map[string][]events.Event), last: make(map[string]int64),
		missing: make(map[string]map[int64]bool), waived: make(map[string]map[int64]bool),
		offsets: make(map[string]int64), claimed: make(map[int64]bool),
		stored: make(map[string]events.Position), adopted: make(map[string]bool), dropped: make(map[uuid.UUID]bool),
	}
}

// add appends events; one that is lost leaves a gap.
func (l *simLog) add(stream string, n int, lost bool) {
	if l.missing[stream] == nil {
		l.missing[stream], l.waived[stream] = make(map[int64]bool), make(map[int64]bool)
	}
	for range n {
		l.last[stream]++
		seq := l.last[stream]
		if lost && seq > 1 {
			l.missing[stream][seq] = true
			lost = false
			continue
		}
		l.streams[stream] = append(l.streams[stream], events.Event{
			ID: events.NewID(stream, l.era*(seq%3), "key", seq, nil), Stream: stream, Seq: seq,
			Subject: string(rune('a' + seq%3)),
		})
	}
}

// copied is the log as it is now, to go back to. Claims are not forgotten: they
// are what the relays believe.
func (l *simLog) copied() *simLog {
	c := &simLog{
		streams: make(map[string][]events.Event), last: maps.Clone(l.last),
		missing: make(map[string]map[int64]bool), waived: make(map[string]map[int64]bool),
		offsets: maps.Clone(l.offsets), stored: maps.Clone(l.stored), adopted: make(map[string]bool), epoch: l.epoch, claimed: l.claimed, era: l.era,
		parked: l.parked, dropped: maps.Clone(l.dropped),
	}
	for stream := range l.streams {
		c.streams[stream] = slices.Clone(l.streams[stream])
	}
	for stream := range l.missing {
		c.missing[stream], c.waived[stream] = maps.Clone(l.missing[stream]), maps.Clone(l.waived[stream])
	}
	return c
}

// clean removes what the sink has stored, as the janitor does, which is slower than the
// relay that notices what the sink has forgotten.
func (l *simLog) clean(stream string, kept map[uuid.UUID]int) {
	n := 0
	for log := l.streams[stream]; n < len(log) && log[n].Seq <= l.offsets[stream] && kept[log[n].ID] > 0; {
		n++
	}
	l.streams[stream] = slices.Clone(l.streams[stream][n:])
}

// waive lets the sink go on behind gaps that it has reached, as an operator
// does; false when there is none.
func (l *simLog) waive() (found bool) {
	for stream, missing := range l.missing {
		next := l.offsets[stream] + 1
		for ; missing[next]; next++ {
			l.waived[stream][next], found = true, true
			l.offsets[stream] = next
		}
	}
	return found
}

// adopt lets streams that do not go on, or have parked events, go on from their offset, as an
// operator does; false when there is none.
func (l *simLog) adopt() (found bool) {
	for stream, last := range l.last {
		if l.offsets[stream] < last || slices.ContainsFunc(l.parked, func(p parkedEvent) bool { return p.Stream == stream }) {
			l.adopted[stream], found = true, true
			l.offsets[stream] += 0 // It has a row now.
		}
	}
	return found
}

// simLogView is the log as one relay sees it, through its wire.
type simLogView struct {
	world *simWorld
	relay *simRelay
	// planned is the era of the last look at the backlog.
	planned int64
}

// call is a call that a relay makes to the log, through its wire.
func call[T any](ctx context.Context, v *simLogView, name, about string, do func(l *simLog) (T, error)) (T, error) {
	return simtest.Call(ctx, v.relay.wire, name, about, func(context.Context) (T, error) {
		v.world.mu.Lock()
		defer v.world.mu.Unlock()
		return do(v.world.log)
	})
}

func (v *simLogView) Backlog(ctx context.Context, _ string) ([]events.Backlog, error) {
	return call(ctx, v, "backlog", "", func(l *simLog) (backlog []events.Backlog, _ error) {
		v.planned = v.world.era
		for _, stream := range slices.Sorted(maps.Keys(l.last)) {
			last, offset := l.last[stream], l.offsets[stream]
			if last <= offset {
				continue
			}
			b := events.Backlog{Stream: stream, Offset: offset, Last: last}
			if i := slices.IndexFunc(l.streams[stream], func(e events.Event) bool { return e.Seq > offset }); i >= 0 {
				b.Next = l.streams[stream][i].Seq
			}
			backlog = append(backlog, b)
		}
		return backlog, nil
	})
}

func (v *simLogView) Read(ctx context.Context, ranges []events.Range, bytes int) ([]events.Event, string, error) {
	type answer struct {
		batch  []events.Event
		server string
	}
	a, err := call(ctx, v, "read", ranges[0].Stream, func(l *simLog) (answer, error) {
		batch := within(l.streams, ranges, bytes)
		for i := range batch {
			batch[i].Version = v.planned
		}
		return answer{batch: batch, server: serverOf(v.world.era)}, nil
	})
	return a.batch, a.server, err
}

func (v *simLogView) Claim(ctx context.Context, _ string, epoch int64) (uuid.UUID, error) {
	return call(ctx, v, "claim", "", func(l *simLog) (uuid.UUID, error) {
		if epoch < l.epoch {
			v.world.tally.Count("stale claim refused")
			return uuid.Nil, events.ErrStale
		}
		l.epoch = epoch
		l.claimed[epoch] = true
		return uuid.Max, nil
	})
}

// Failed is for people, as Delivered: no other call depends on them.
func (v *simLogView) Failed(context.Context, string, string, int64) error { return nil }
func (v *simLogView) Delivered(context.Context, events.Event)             {}

// Pause is not called: no receiver has gone.
func (v *simLogView) Pause(context.Context, string, string, int64) error { return nil }

func (v *simLogView) Move(ctx context.Context, _ string, steps []events.Step, epoch int64) error {
	if v.relay.lostBefore() {
		v.world.broken("offset moved after the lease was lost")
	}
	_, err := call(ctx, v, "acknowledge", steps[0].Stream(), func(l *simLog) (any, error) {
		for _, step := range steps {
			stream, seq := step.Stream(), step.Last()
			switch at := l.offsets[stream]; {
			case epoch != l.epoch:
				v.world.tally.Count("stale acknowledgement refused")
				return nil, events.ErrStale
			case at != step.After && at != seq || !stillHas(l.streams[stream], step, v.world.era):
				v.world.tally.Count("acknowledgement of another log refused")
				return nil, events.ErrLogChanged
			}
			l.parked = l.parked.with(step)
			for range step.Parked {
				v.world.tally.Count("event parked")
			}
			v.world.lacksNothing(stream, seq)
			l.offsets[stream] = seq
			if step.Stored != nil {
				l.stored[stream] = *step.Stored
				delete(l.adopted, stream)
			}
		}
		return nil, nil
	})
	return err
}

func (v *simLogView) Parked(ctx context.Context, _ string) ([]events.ParkedKey, error) {
	return call(ctx, v, "parked", "", func(l *simLog) ([]events.ParkedKey, error) { return l.parked.keys(false), nil })
}

func (v *simLogView) Retries(ctx context.Context, _ string, limit, _ int) ([]events.Event, error) {
	return call(ctx, v, "retries", "", func(l *simLog) ([]events.Event, error) { return l.parked.retries(l.offsets, limit), nil })
}

func (v *simLogView) Unpark(ctx context.Context, _ string, delivered []events.Event, epoch int64) error {
	_, err := call(ctx, v, "unpark", delivered[0].Stream, func(l *simLog) (any, error) {
		if epoch != l.epoch {
			return nil, events.ErrStale
		}
		v.world.tally.Count("parked event delivered")
		l.parked = l.parked.without(delivered)
		return nil, nil
	})
	return err
}

func (v *simLogView) Repark(ctx context.Context, _ string, refused events.Event, reason string, epoch int64) error {
	_, err := call(ctx, v, "repark", refused.Stream, func(l *simLog) (any, error) {
		if epoch != l.epoch {
			return nil, events.ErrStale
		}
		l.parked = l.parked.refused(refused, reason)
		return nil, nil
	})
	return err
}

func (v *simLogView) Marks(ctx context.Context, _ string) ([]events.Mark, error) {
	return call(ctx, v, "marks", "", func(l *simLog) (marks []events.Mark, _ error) {
		for _, stream := range slices.Sorted(maps.Keys(l.offsets)) {
			marks = append(marks, events.Mark{Stream: stream, Offset: l.offsets[stream], Stored: l.stored[stream], Adopted: l.adopted[stream]})
		}
		return marks, nil
	})
}

func (v *simLogView) Seek(ctx context.Context, _ string, from events.Mark, offset int64, stored events.Position, epoch int64) error {
	_, err := call(ctx, v, "seek", from.Stream, func(l *simLog) (any, error) {
		switch {
		case epoch != l.epoch:
			return nil, events.ErrStale
		case l.offsets[from.Stream] != from.Offset:
			return nil, events.ErrLogChanged
		case offset > from.Offset:
			v.world.tally.Count("offset moved to what the sink has")
			v.world.lacksNothing(from.Stream, offset)
		case offset < from.Offset:
			v.world.tally.Count("offset moved back to what the sink has")
		}
		l.offsets[from.Stream], l.stored[from.Stream] = offset, stored
		delete(l.adopted, from.Stream)
		return nil, nil
	})
	return err
}

func (v *simLogView) Holds(ctx context.Context, positions []events.Position) (held, taken []events.Position, err error) {
	both, err := call(ctx, v, "holds", "", func(l *simLog) (both [2][]events.Position, _ error) {
		both[0], both[1] = holds(l.streams, positions)
		return both, nil
	})
	return both[0], both[1], err
}
