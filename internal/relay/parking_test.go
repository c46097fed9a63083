package relay_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
)

// addKeys appends events of keys to orders: the first is of the first key.
func (l *fakeLog) addKeys(keys ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		e := event("orders", int64(len(l.streams["orders"])+1))
		e.Subject = key
		l.streams["orders"] = append(l.streams["orders"], e)
	}
}

// retryParked has an operator want all parked events delivered.
func (l *fakeLog) retryParked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parked = l.parked.retry()
}

func (l *fakeLog) wantParked(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var got []string
	for _, p := range l.parked {
		got = append(got, fmt.Sprint(p.Seq, " ", p.reason))
	}
	if !slices.Equal(got, want) {
		t.Errorf("parked are %q, want %q", got, want)
	}
}

func (s *fakeSink) reject(seqs ...int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejects = map[uuid.UUID]bool{}
	for _, seq := range seqs {
		s.rejects[event("orders", seq).ID] = true
	}
}

const follower = "an earlier event of its key is parked"

// TestRelayParksWhatASinkRefuses parks an event and later ones of its key, and lets all
// others go on; with the offset past a parked event before anything behind it is delivered.
func TestRelayParksWhatASinkRefuses(t *testing.T) {
	bubble(t, func(r *rig) {
		s := r.resumer()
		r.opts.Park = true
		r.log.addKeys("a", "b", "c", "b", "a", "b", "c")
		r.log.add("stock", upTo(5)...)
		r.sink.reject(2)
		r.sink.behave(func(_ context.Context, batch []events.Event) (int, error) {
			for _, e := range batch {
				if e.Stream == "orders" && e.Seq > 2 && r.log.offset("orders") < 2 {
					t.Errorf("event %d is delivered, and the offset is %d", e.Seq, r.log.offset("orders"))
				}
			}
			return len(batch), nil
		})
		r.start()
		pass(time.Second)
		r.wantStored("orders", []int64{1, 3, 5, 7})
		r.wantStored("stock", upTo(5))
		r.wantOffset("orders", 7)
		r.log.wantParked(t, "2 too large", "4 "+follower, "6 "+follower)
		r.wantMetric("observerd_relay_parked_events", 3)
		r.wantMetric("observerd_relay_halted_streams", 0)
		r.wantLogged("Events parked", 3)

		r.lock.expire(false) // The next term knows what is parked.
		pass(time.Minute)
		r.log.addKeys("b", "a")
		pass(time.Second)
		r.wantStored("orders", []int64{1, 3, 5, 7, 9})
		r.wantOffset("orders", 9)
		if at := s.isAt(); at != 9 {
			t.Errorf("the sink is at %d", at)
		}
	})
}

// TestRelayRetriesParkedEvents delivers what an operator wants delivered, late and in order,
// and keeps what is refused again.
func TestRelayRetriesParkedEvents(t *testing.T) {
	bubble(t, func(r *rig) {
		s := r.resumer()
		r.opts.Park = true
		r.log.addKeys("a", "b", "c", "b", "c", "a")
		r.sink.reject(2, 3)
		r.start()
		pass(time.Second)
		r.log.wantParked(t, "2 too large", "3 too large", "4 "+follower, "5 "+follower)
		r.wantMetric("observerd_relay_parked_seconds", 1)

		r.sink.reject(3)
		r.log.retryParked()
		pass(2 * time.Second)
		r.wantStored("orders", []int64{1, 6, 2, 4})
		r.log.wantParked(t, "3 too large", "5 "+follower)
		r.log.addKeys("b", "c")
		pass(time.Second)
		r.wantStored("orders", []int64{1, 6, 2, 4, 7})
		r.wantOffset("orders", 8)
		if at := s.isAt(); at != 7 {
			t.Errorf("the sink is at %d: an event that came late has moved it", at)
		}

		r.sink.reject()
		r.sink.behave(func(context.Context, []events.Event) (int, error) { return 0, errBroken })
		r.log.retryParked()
		pass(5 * time.Second)
		r.wantLogged("Sink fails, repeating", 1)
		r.sink.behave(nil)
		pass(time.Minute)
		r.wantStored("orders", []int64{1, 6, 2, 4, 7, 3, 5, 8})
		r.log.wantParked(t)
		r.wantMetric("observerd_relay_parked_events", 0)
		r.wantMetric("observerd_relay_parked_seconds", 0)
	})
}

// TestRelayDeliversAgainWhatComesBeforeTheParked has the sink lose what it had stored of a key
// before the event that it has refused, over more batches than a round takes.
func TestRelayDeliversAgainWhatComesBeforeTheParked(t *testing.T) {
	bubble(t, func(r *rig) {
		s := r.resumer()
		r.opts.Park = true
		r.log.addKeys("k")
		for range 30 {
			r.log.addKeys("other")
		}
		r.log.addKeys("k", "k")
		r.sink.reject(32)
		r.start()
		pass(time.Second)
		r.log.wantParked(t, "32 too large", "33 "+follower)

		s.mu.Lock()
		delete(s.at, "orders") // Restored to before the stream, by an operator who adopts it.
		s.stored = nil
		s.mu.Unlock()
		r.log.mu.Lock()
		r.log.offsets["orders"], r.log.stored["orders"] = 0, events.Position{}
		r.log.parked = r.log.parked.retry()
		r.log.mu.Unlock()
		r.sink.reject()
		pass(2 * time.Minute)
		got := r.sink.seqs("orders")
		if len(got) != 33 || !slices.IsSorted(got) {
			t.Errorf("stored are %v, want all 33 in order", got)
		}
		r.log.wantParked(t)
	})
}

// TestRelayKeepsParkedEventsWhoseRemovalFails delivers them again: at least once.
func TestRelayKeepsParkedEventsWhoseRemovalFails(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.Park = true
		r.log.addKeys("a")
		r.sink.reject(1)
		r.start()
		pass(time.Second)
		r.sink.reject()
		r.log.fail(func(call string) error {
			if call == "unpark" {
				return errDown
			}
			return nil
		}, nil)
		r.log.retryParked()
		pass(time.Second)
		r.log.fail(nil, nil)
		pass(time.Minute)
		if got := r.sink.seqs("orders"); len(got) < 2 {
			t.Errorf("delivered %v, want it again", got)
		}
		r.log.wantParked(t)
	})
}

// TestRelayLeavesAPausedSinkAloneWithParkedEvents keeps a retry until the sink is resumed.
func TestRelayLeavesAPausedSinkAloneWithParkedEvents(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.Park = true
		r.log.addKeys("a")
		r.sink.reject(1)
		r.start()
		pass(time.Second)
		r.sink.reject()
		r.log.mu.Lock()
		r.log.paused, r.log.parked = true, r.log.parked.retry()
		r.log.mu.Unlock()
		pass(time.Minute)
		r.wantStored("orders", nil)
		r.log.mu.Lock()
		r.log.paused = false
		r.log.mu.Unlock()
		pass(time.Second)
		r.wantStored("orders", upTo(1))
	})
}

// TestRelayParksNoMoreThanAThousand halts the stream then, and no other.
func TestRelayParksNoMoreThanAThousand(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.Park = true
		for range 1001 {
			r.log.addKeys("a")
		}
		r.log.add("stock", upTo(5)...)
		r.sink.reject(1)
		r.start()
		pass(time.Second)
		if at := r.log.offset("orders"); at <= 1000-10 || at > 1000 { // A batch has 10.
			t.Errorf("%d events are parked, want a thousand", at)
		}
		r.wantStored("stock", upTo(5))
		r.wantMetric("observerd_relay_halted_streams", 1)
		r.log.mu.Lock()
		r.log.parked = r.log.parked[20:] // An operator drops them.
		r.log.mu.Unlock()
		pass(time.Minute)
		r.wantOffset("orders", 1001)
		r.wantMetric("observerd_relay_halted_streams", 0)
	})
}

// TestStreamStaysHaltedBehindALateAcknowledgement has no room for an event behind a batch that is
// to be acknowledged with the next ones.
func TestStreamStaysHaltedBehindALateAcknowledgement(t *testing.T) {
	bubble(t, func(r *rig) {
		r.resumer()
		r.opts.Park = true
		r.log.addKeys(slices.Repeat([]string{"a"}, 1000)...)
		r.log.addKeys(slices.Repeat([]string{"b"}, 10)...)
		r.log.addKeys("a")
		r.log.addKeys(slices.Repeat([]string{"b"}, 30)...)
		r.sink.reject(1)
		r.start()
		pass(10 * time.Second)
		r.wantOffset("orders", 1010)
		r.wantStored("orders", []int64{1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010})
		r.wantMetric("observerd_relay_halted_streams", 1)
		r.wantLogged("Stream halted", 1)
	})
}

// TestRelayParksAsManyAsFit parks what there is room for of a batch that has more events of the
// key than may be parked.
func TestRelayParksAsManyAsFit(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.Park, r.opts.BatchSize = true, 5000
		r.log.addKeys(slices.Repeat([]string{"a"}, 1200)...)
		r.sink.reject(1)
		r.start()
		pass(time.Second)
		r.wantOffset("orders", 1000)
		r.wantMetric("observerd_relay_parked_events", 1000)
		r.log.mu.Lock()
		r.log.parked = nil // An operator drops them.
		r.log.mu.Unlock()
		pass(time.Minute)
		r.wantOffset("orders", 1200)
	})
}

// TestRelayDeliversOthersWhileARetryFails has a receiver that fails at a parked event, and at
// no other.
func TestRelayDeliversOthersWhileARetryFails(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.Park = true
		r.log.addKeys("a")
		r.sink.reject(1)
		r.start()
		pass(time.Second)
		r.sink.reject()
		r.sink.behave(func(_ context.Context, batch []events.Event) (int, error) {
			if i := slices.IndexFunc(batch, func(e events.Event) bool { return e.Stream == "orders" && e.Seq == 1 }); i >= 0 {
				return i, errBroken
			}
			return len(batch), nil
		})
		r.log.retryParked()
		pass(time.Second)
		r.log.add("stock", upTo(3)...)
		pass(10 * time.Minute)
		r.wantStored("stock", upTo(3))
	})
}

// TestRelayRetriesBehindWhatASinkHasLost delivers a key in order where the sink went back to
// before an event that is parked, and to be retried.
func TestRelayRetriesBehindWhatASinkHasLost(t *testing.T) {
	bubble(t, func(r *rig) {
		s := r.resumer()
		r.opts.Park = true
		r.log.addKeys("a", "b", "b")
		r.sink.reject(3)
		r.start()
		pass(time.Second)
		r.log.wantParked(t, "3 too large")
		r.sink.reject()
		s.holds(events.Ends(r.log.streams["orders"][:1], s.log, nil)[0], nil) // It lost 2.
		r.log.retryParked()
		r.lock.expire(false)
		pass(2 * time.Minute)
		if late := r.sink.seqs("orders")[2:]; late[0] == 3 {
			t.Errorf("events %v come after the sink went back: 3 is before 2", late)
		}
	})
}

// TestRelayRetriesNothingWhereATargetIsAnotherOne keeps parked events of a halted stream.
func TestRelayRetriesNothingWhereATargetIsAnotherOne(t *testing.T) {
	bubble(t, func(r *rig) {
		s := r.resumer()
		r.opts.Park = true
		r.log.addKeys("a", "b")
		r.sink.reject(2)
		r.start()
		pass(time.Second)
		r.log.wantParked(t, "2 too large")
		s.mu.Lock()
		delete(s.at, "orders") // The target is another one.
		s.mu.Unlock()
		pass(2 * time.Minute)
		r.wantMetric("observerd_relay_halted_streams", 1)
		r.sink.reject()
		r.log.retryParked()
		pass(time.Minute)
		r.wantStored("orders", []int64{1})
		s.holds(events.Ends(r.log.streams["orders"][:1], s.log, nil)[0], nil) // The address is corrected.
		pass(time.Minute)
		r.wantStored("orders", upTo(2))
	})
}

// TestRelayShowsWhatIsParkedOfAPausedSink counts it in a term that does not open the sink.
func TestRelayShowsWhatIsParkedOfAPausedSink(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.Park = true
		r.log.addKeys("a")
		r.sink.reject(1)
		r.start()
		pass(time.Second)
		r.wantMetric("observerd_relay_parked_events", 1)
		r.log.mu.Lock()
		r.log.paused = true
		r.log.mu.Unlock()
		r.log.addKeys("b")
		r.lock.expire(false)
		pass(time.Minute)
		r.wantMetric("observerd_relay_parked_events", 1)
	})
}

// TestRelayParksInOneTransaction finds an event that is refused again after the log has
// neither moved nor parked.
func TestRelayParksInOneTransaction(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.Park = true
		r.log.addKeys("a", "b")
		r.sink.reject(1)
		failed := false
		r.log.fail(func(call string) error {
			if call == "acknowledge" && !failed {
				failed = true
				return errDown
			}
			return nil
		}, nil)
		r.start()
		pass(time.Minute)
		r.log.wantParked(t, "1 too large")
		r.wantStored("orders", []int64{2})
		r.wantOffset("orders", 2)
	})
}
