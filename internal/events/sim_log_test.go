package events_test

import (
	"context"
	"maps"
	"slices"

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
	epoch           int64
	claimed         map[int64]bool
	// era is part of the ids of some events: they are others when the log has gone
	// back.
	era int64
}

func newSimLog() *simLog {
	return &simLog{
		streams: make(map[string][]events.Event), last: make(map[string]int64),
		missing: make(map[string]map[int64]bool), waived: make(map[string]map[int64]bool),
		offsets: make(map[string]int64), claimed: make(map[int64]bool),
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
		})
	}
}

// copied is the log as it is now, to go back to. Claims are not forgotten: they
// are what the relays believe.
func (l *simLog) copied() *simLog {
	c := &simLog{
		streams: make(map[string][]events.Event), last: maps.Clone(l.last),
		missing: make(map[string]map[int64]bool), waived: make(map[string]map[int64]bool),
		offsets: maps.Clone(l.offsets), epoch: l.epoch, claimed: l.claimed, era: l.era,
	}
	for stream := range l.streams {
		c.streams[stream] = slices.Clone(l.streams[stream])
	}
	for stream := range l.missing {
		c.missing[stream], c.waived[stream] = maps.Clone(l.missing[stream]), maps.Clone(l.waived[stream])
	}
	return c
}

// clean removes what the sink has stored, as the janitor does.
func (l *simLog) clean(stream string) {
	l.streams[stream] = slices.DeleteFunc(l.streams[stream], func(e events.Event) bool {
		return e.Seq <= l.offsets[stream]
	})
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

// simLogView is the log as one relay sees it, through its wire.
type simLogView struct {
	world *simWorld
	relay *simRelay
}

func (v *simLogView) Backlog(ctx context.Context, _ string) ([]events.Backlog, error) {
	return simtest.Call(ctx, v.relay.wire, "backlog", "", func(context.Context) (backlog []events.Backlog, _ error) {
		v.world.mu.Lock()
		defer v.world.mu.Unlock()
		for _, stream := range slices.Sorted(maps.Keys(v.world.log.last)) {
			if last, stored := v.world.log.last[stream], v.world.log.offsets[stream]; last > stored {
				backlog = append(backlog, events.Backlog{Stream: stream, Acknowledged: stored, Last: last})
			}
		}
		return backlog, nil
	})
}

func (v *simLogView) Read(ctx context.Context, stream string, after int64, limit int) ([]events.Event, error) {
	return simtest.Call(ctx, v.relay.wire, "read", stream, func(context.Context) (batch []events.Event, _ error) {
		v.world.mu.Lock()
		defer v.world.mu.Unlock()
		for _, e := range v.world.log.streams[stream] {
			if e.Seq > after && len(batch) < limit {
				e.Version = v.world.era
				batch = append(batch, e)
			}
		}
		return batch, nil
	})
}

func (v *simLogView) Claim(ctx context.Context, _ string, epoch int64) error {
	return simtest.Do(ctx, v.relay.wire, "claim", "", func(context.Context) error {
		v.world.mu.Lock()
		defer v.world.mu.Unlock()
		if epoch < v.world.log.epoch {
			v.world.tally.Count("stale claim refused")
			return events.ErrStale
		}
		v.world.log.epoch = epoch
		v.world.log.claimed[epoch] = true
		return nil
	})
}

// Failed is for people: no other call depends on it.
func (v *simLogView) Failed(context.Context, string, string, int64) error { return nil }

func (v *simLogView) Acknowledge(ctx context.Context, _ string, stored events.Stored, epoch int64) error {
	stream, seq := stored.Stream(), stored.Last()
	if v.relay.lostBefore() {
		v.world.broken("offset moved after the lease was lost")
	}
	return simtest.Do(ctx, v.relay.wire, "acknowledge", stream, func(context.Context) error {
		v.world.mu.Lock()
		defer v.world.mu.Unlock()
		log := v.world.log
		switch at := log.offsets[stream]; {
		case epoch != log.epoch:
			v.world.tally.Count("stale acknowledgement refused")
			return events.ErrStale
		case at != stored.After && at != seq || !holdsAll(log.streams[stream], stored.Events):
			v.world.tally.Count("acknowledgement of another log refused")
			return events.ErrLogChanged
		}
		v.world.lacksNothing(stream, seq)
		log.offsets[stream] = seq
		return nil
	})
}
