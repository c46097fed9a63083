package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
)

// resumer is a fake sink with positions.
type resumer struct {
	*fakeSink
	log uuid.UUID
	at  map[string]events.Position
	err error
	// opened are the terms for which it was opened.
	opened []sink.Term
	asked  int
}

func (r *rig) resumer() *resumer {
	s := &resumer{fakeSink: r.sink, log: r.log.id, at: map[string]events.Position{}}
	r.opts.Open = func(_ context.Context, t sink.Term) (sink.Sink, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.opened = append(s.opened, t)
		return s, nil
	}
	return s
}

func (s *resumer) Positions(_ context.Context, streams []string) (found []events.Position, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	for _, stream := range streams {
		if p, ok := s.at[stream]; ok {
			found = append(found, p)
		}
	}
	return found, s.err
}

func (s *resumer) Deliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	result, err := s.fakeSink.Deliver(ctx, batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range result.Stored {
		stored := slices.DeleteFunc(slices.Clone(batch), func(e events.Event) bool { return e.Stream != p.Stream || e.Seq > p.Seq })
		result.Stored[i] = events.Ends(stored, s.log, s.at)[0]
		s.at[p.Stream] = result.Stored[i]
	}
	return result, err
}

// holds makes the sink hold a position of orders, or fail to say it.
func (s *resumer) holds(p events.Position, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at["orders"], s.err = p, err
}

// openings returns the last term for which the sink was opened, and how often it was.
func (s *resumer) openings() (last sink.Term, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened[len(s.opened)-1], len(s.opened)
}

// isAt returns the position of orders.
func (s *resumer) isAt() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at["orders"].Seq
}

func (s *resumer) Redeliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	return s.fakeSink.Deliver(ctx, batch)
}

// position is that of an event of orders which was stored in one step behind others.
func (r *rig) position(from, seq int64) events.Position {
	var batch []events.Event
	for ; from <= seq; from++ {
		batch = append(batch, event("orders", from))
	}
	return events.Ends(batch, r.log.id, nil)[0]
}

// TestRelayComparesItsSink is the table of docs/delivery.md: orders has 10 events, of which
// the first 5 are acknowledged.
func TestRelayComparesItsSink(t *testing.T) {
	for name, tc := range map[string]struct {
		has    func(r *rig, s *resumer)
		stored []int64 // afterwards, by the sink
		halted string
		logged string
	}{
		"the same":                 {func(*rig, *resumer) {}, []int64{6, 7, 8, 9, 10}, "", "Relay leads"},
		"ahead":                    {func(r *rig, s *resumer) { s.at["orders"] = r.position(1, 8) }, []int64{9, 10}, "", "Sink has stored more than was acknowledged"},
		"ahead by other events":    {func(r *rig, s *resumer) { s.at["orders"] = r.position(7, 8) }, nil, "does not know", "Stream halted"},
		"behind":                   {func(r *rig, s *resumer) { s.at["orders"] = r.position(1, 3) }, []int64{4, 5, 6, 7, 8, 9, 10}, "", "Sink has lost events that it had stored"},
		"behind what is taken":     {func(r *rig, s *resumer) { s.at["orders"] = r.position(1, 3); r.clean(3) }, []int64{4, 5, 6, 7, 8, 9, 10}, "", "delivering them again"},
		"behind what was not kept": {func(r *rig, s *resumer) { s.at["orders"] = r.position(1, 3); r.clean(4) }, nil, "the event log has a gap", "Stream halted"},
		"nothing":                  {func(_ *rig, s *resumer) { clear(s.at) }, nil, "none of the events", "Stream halted"},
		"nothing, by its own retention": {func(_ *rig, s *resumer) { clear(s.at); s.err = sink.ErrEmptied }, []int64{6, 7, 8, 9, 10}, "",
			"emptied by its own retention"},
		"another log": {func(r *rig, s *resumer) {
			other := r.position(1, 5)
			other.Log = uuid.Max
			s.at["orders"] = other
		}, nil, "does not know", "Stream halted"},
		"another event": {func(r *rig, s *resumer) {
			other := r.position(1, 5)
			other.ID = uuid.Max
			s.at["orders"] = other
		}, nil, "does not know", "Stream halted"},
		"beyond the log": {func(r *rig, s *resumer) { s.at["orders"] = r.position(11, 11) }, nil, "does not know", "Stream halted"},
		"another log, adopted": {func(r *rig, s *resumer) {
			r.log.adopted["orders"] = true
			other := r.position(1, 5)
			other.Log = uuid.Max
			s.at["orders"] = other
		}, []int64{6, 7, 8, 9, 10}, "", "Relay leads"},
		"ahead, adopted": {func(r *rig, s *resumer) {
			r.log.adopted["orders"] = true
			s.at["orders"] = r.position(1, 8)
		}, []int64{9, 10}, "", "Sink has stored more than was acknowledged"},
		"far ahead, adopted": {func(r *rig, s *resumer) {
			r.log.adopted["orders"] = true
			s.at["orders"] = r.position(7, 8)
		}, []int64{6, 7, 8, 9, 10}, "", "Relay leads"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.log.add("orders", upTo(10)...)
				s := r.resumer()
				r.log.offsets["orders"], r.log.stored["orders"], s.at["orders"] = 5, r.position(1, 5), r.position(1, 5)
				tc.has(r, s)
				r.start()
				pass(time.Second)
				r.wantStored("orders", tc.stored)
				r.wantLogged(tc.logged, 1)
				halted := 0.0
				if tc.halted != "" {
					halted = 1
					r.wantNoted(tc.halted)
				}
				r.wantMetric("observerd_relay_halted_streams", halted)
				if at := s.isAt(); len(tc.stored) > 0 && at != 10 {
					t.Errorf("the sink is at %d", at)
				}
			})
		})
	}
}

// TestRelayAcknowledgesBatchesTogether has a sink that knows its positions store ten batches of
// two streams, and the log refuse an acknowledgement: nothing is stored twice.
func TestRelayAcknowledgesBatchesTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		knows bool
		moves int
	}{"a sink that knows its positions": {true, 3}, "one that does not": {false, 10}} {
		for _, fault := range []error{nil, errors.New("the server is starting up")} {
			t.Run(fmt.Sprintf("%s, %v", name, fault), func(t *testing.T) {
				bubble(t, func(r *rig) {
					for _, stream := range []string{"orders", "stock"} {
						r.log.add(stream, upTo(50)...)
					}
					if tc.knows {
						r.resumer()
					}
					failing := fault
					r.log.before = func(call string) error {
						if call != "acknowledge" || failing == nil {
							return nil
						}
						err := failing
						failing = nil
						return err
					}
					r.start()
					pass(5 * time.Second)
					for _, stream := range []string{"orders", "stock"} {
						r.wantStored(stream, upTo(50))
						r.wantOffset(stream, 50)
						if end := events.Ends(r.log.streams[stream], r.log.id, nil)[0]; tc.knows && r.log.stored[stream] != end {
							t.Errorf("the log has %+v as stored of %s, want %+v", r.log.stored[stream], stream, end)
						}
					}
					if got := r.log.calls["acknowledge"]; fault == nil && got != tc.moves {
						t.Errorf("%d acknowledgements of ten batches, want %d", got, tc.moves)
					}
				})
			})
		}
	}
}

// clean has retention take events from the log.
func (r *rig) clean(upTo int64) { r.log.streams["orders"] = r.log.streams["orders"][upTo:] }

// TestRelayComparesAStreamThatIsNew has the sink know a stream of another log, which the log
// begins later.
func TestRelayComparesAStreamThatIsNew(t *testing.T) {
	bubble(t, func(r *rig) {
		s := r.resumer()
		old := r.position(1, 3)
		old.Log = uuid.Max
		s.at["orders"] = old
		r.start()
		pass(time.Second)
		r.log.add("orders", upTo(2)...)
		r.log.add("stock", 1)
		pass(time.Minute)
		r.wantStored("orders", nil)
		r.wantStored("stock", upTo(1))
		r.log.mu.Lock()
		r.log.adopted["orders"] = true
		r.log.offsets["orders"] = 0
		r.log.mu.Unlock()
		pass(time.Minute)
		r.wantStored("orders", upTo(2))
		r.wantLogged("Stream halted", 1)
		r.wantLogged("Stream continues", 1)
	})
}

// TestRelayComparesAnIdleSink: the target is restored while there is nothing to deliver.
func TestRelayComparesAnIdleSink(t *testing.T) {
	bubble(t, func(r *rig) {
		s := r.resumer()
		r.log.add("orders", upTo(4)...)
		r.start()
		pass(time.Second)
		s.holds(r.position(1, 2), nil)
		pass(2 * time.Minute)
		r.wantStored("orders", []int64{1, 2, 3, 4, 3, 4})
		r.wantMetric("observerd_relay_rewinds_total", 1)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.asked > 4 {
			t.Errorf("the sink was asked %d times in two minutes", s.asked)
		}
	})
}

// TestRelayComparesAgainWhenTheLogWentBack, within its term: the sink is not given again what
// it has.
func TestRelayComparesAgainWhenTheLogWentBack(t *testing.T) {
	bubble(t, func(r *rig) {
		r.resumer()
		r.opts.BatchSize = 5
		r.log.add("orders", upTo(5)...)
		r.start()
		pass(time.Second)
		r.log.add("orders", 6, 7, 8)
		pass(time.Second)
		r.wantStored("orders", upTo(8))
		r.log.mu.Lock()
		r.log.offsets["orders"], r.log.stored["orders"] = 5, r.position(1, 5)
		r.log.mu.Unlock()
		pass(time.Second)
		r.wantStored("orders", upTo(8))
		r.wantOffset("orders", 8)
	})
}

// TestRelayFeedsAllStreamsButOne has a sink that takes 200 ms and fails whenever a batch has
// an event of one stream among a hundred.
func TestRelayFeedsAllStreamsButOne(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.BatchSize = 500
		for i := range 100 {
			r.log.add(fmt.Sprintf("stream-%02d", i), upTo(3)...)
		}
		r.sink.behave(func(_ context.Context, batch []events.Event) (int, error) {
			time.Sleep(200 * time.Millisecond)
			if slices.ContainsFunc(batch, func(e events.Event) bool { return e.Stream == "stream-10" }) {
				return 0, errBroken
			}
			return len(batch), nil
		})
		r.start()
		pass(5 * time.Minute)
		if n := len(r.sink.seqs("stream-10")); n != 0 {
			t.Errorf("%d events of the stream that fails are stored", n)
		}
		r.sink.mu.Lock()
		defer r.sink.mu.Unlock()
		if len(r.sink.stored) != 297 {
			t.Errorf("%d events are stored, want those of 99 streams", len(r.sink.stored))
		}
	})
}

// TestRelayLeavesAPausedSinkAlone has its target stopped meanwhile.
func TestRelayLeavesAPausedSinkAlone(t *testing.T) {
	bubble(t, func(r *rig) {
		s := r.resumer()
		r.log.add("orders", 1)
		r.log.paused = true
		s.err = errBroken
		r.start()
		pass(10 * time.Minute)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.opened) > 0 || s.asked > 0 || r.lock.tries() != 1 {
			t.Errorf("opened %d times, asked %d times, under %d leases", len(s.opened), s.asked, r.lock.tries())
		}
		r.wantMetric("observerd_relay_paused", 1)
	})
}

// TestRelayOpensASinkAnewThatFailed: what an answer would have said is in its position.
func TestRelayOpensASinkAnewThatFailed(t *testing.T) {
	bubble(t, func(r *rig) {
		s := r.resumer()
		r.log.add("orders", upTo(3)...)
		r.sink.behave(func(_ context.Context, batch []events.Event) (int, error) {
			s.holds(r.position(1, 3), nil)
			return 0, errBroken
		})
		r.start()
		pass(time.Millisecond)
		r.sink.behave(nil)
		pass(time.Minute)
		r.wantStored("orders", nil) // It has them, and was not given them again.
		r.wantOffset("orders", 3)
		if _, n := s.openings(); n != 2 {
			t.Errorf("opened %d times, want twice", n)
		}
	})
}

// TestRelayOpensASinkAnewThatFailedWithTheLog has the log fail for a stream that the sink is not
// given, in the step in which the sink fails for another one.
func TestRelayOpensASinkAnewThatFailedWithTheLog(t *testing.T) {
	bubble(t, func(r *rig) {
		s := r.resumer()
		r.opts.Wanted = func(e *events.Event) bool { return e.Stream == "orders" }
		r.log.add("orders", 1)
		r.log.add("stock", 1)
		failing, calls := true, 0
		r.sink.behave(func(_ context.Context, batch []events.Event) (int, error) {
			if calls++; calls == 1 {
				s.holds(r.position(1, 1), nil) // It is stored, and nobody hears of it.
				return 0, errBroken
			}
			return len(batch), nil
		})
		r.log.fail(func(call string) error {
			if call == "acknowledge" && failing {
				failing = false
				return errDown
			}
			return nil
		}, nil)
		r.start()
		pass(time.Minute)
		r.wantStored("orders", nil) // Not once more.
		r.wantOffset("orders", 1)
		r.wantOffset("stock", 1)
	})
}

// TestRelayOpensASinkAnewThatHasExpired: it is a failure only where it does not help.
func TestRelayOpensASinkAnewThatHasExpired(t *testing.T) {
	bubble(t, func(r *rig) {
		s := r.resumer()
		var left atomic.Int64
		left.Store(1)
		r.sink.behave(func(_ context.Context, batch []events.Event) (int, error) {
			if left.Add(-1) >= 0 {
				return 0, sink.ErrExpired
			}
			return len(batch), nil
		})
		r.log.add("orders", 1)
		r.start()
		pass(time.Millisecond)
		r.wantStored("orders", upTo(1))
		if _, n := s.openings(); n != 2 {
			t.Errorf("the sink was opened %d times, want twice", n)
		}
		r.wantMetric("observerd_relay_sink_failures_total", 0)
		left.Store(3)
		r.log.add("orders", 2)
		pass(time.Minute)
		r.wantStored("orders", upTo(2))
		r.wantMetric("observerd_relay_sink_failures_total", 2)
	})
}

// TestRelayOfARestoredLog counts terms again that the sink knows.
func TestRelayOfARestoredLog(t *testing.T) {
	bubble(t, func(r *rig) {
		s, stale := r.resumer(), &sink.StaleError{Epoch: 99}
		s.err = stale
		r.log.add("orders", 1)
		r.start()
		pass(time.Millisecond)
		s.mu.Lock()
		s.err = nil
		s.mu.Unlock()
		pass(time.Minute)
		r.wantStored("orders", upTo(1))
		if last, _ := s.openings(); !last.Restored || last.Epoch != 1 || last.Log != r.log.id {
			t.Errorf("opened for %+v, want a restored log", last)
		}

		r.log.setEpoch(99) // A later relay has claimed the sink, by the log too.
		r.sink.behave(func(context.Context, []events.Event) (int, error) { return 0, stale })
		r.log.fail(func(call string) error {
			if call == "claim" {
				return events.ErrStale
			}
			return nil
		}, nil)
		r.log.add("orders", 2)
		pass(time.Second)
		r.wantLogged("Relay lost the lead", 1)
	})
}

// TestRelayRejection halts a stream at an event that the sink rejects, and no other.
func TestRelayRejection(t *testing.T) {
	bubble(t, func(r *rig) {
		r.resumer()
		r.log.add("orders", upTo(5)...)
		r.log.add("stock", upTo(5)...)
		r.sink.rejects = map[uuid.UUID]bool{event("orders", 3).ID: true}
		r.start()
		pass(5 * time.Minute)
		r.wantStored("orders", upTo(2))
		r.wantOffset("orders", 2)
		r.wantStored("stock", upTo(5))
		r.wantLogged("Stream halted", 1)
		r.wantMetric("observerd_relay_halted_streams", 1)
		r.sink.mu.Lock()
		r.sink.rejects = nil // Somebody has made room for it.
		r.sink.mu.Unlock()
		pass(time.Minute)
		r.wantStored("orders", upTo(5))
		r.wantLogged("Stream continues", 1)
		r.wantMetric("observerd_relay_halted_streams", 0)
	})
}

// TestRelayFilter moves the offset past what the sink does not want.
func TestRelayFilter(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.Wanted = func(e *events.Event) bool { return e.Stream == "orders" && e.Seq%3 == 0 }
		r.log.add("orders", upTo(20)...)
		r.log.add("stock", upTo(7)...)
		s := r.resumer()
		r.start()
		pass(time.Second)
		r.wantStored("orders", []int64{3, 6, 9, 12, 15, 18})
		r.wantStored("stock", nil)
		r.wantOffset("orders", 20)
		r.wantOffset("stock", 7)
		r.log.mu.Lock()
		defer r.log.mu.Unlock()
		if stored, at := r.log.stored["orders"], s.isAt(); stored.Seq != 18 || at != 18 || r.log.stored["stock"].Seq != 0 {
			t.Errorf("the log has %d as the last event that is stored, the sink %d, want 18", stored.Seq, at)
		}
		r.wantMetric("observerd_relay_delivered_events_total", 6)
	})
}

func TestRelayPausesASinkThatHasGone(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", upTo(2)...)
		r.sink.behave(func(context.Context, []events.Event) (int, error) {
			return 0, errors.Join(sink.ErrGone, errBroken)
		})
		r.start()
		pass(time.Hour)
		if r.sink.batches != 1 {
			t.Errorf("a sink that has gone was given %d batches", r.sink.batches)
		}
		r.wantMetric("observerd_relay_lag_events", 2)
		r.sink.behave(nil)
		r.log.mu.Lock()
		r.log.paused = false
		r.log.mu.Unlock()
		pass(time.Second)
		r.wantStored("orders", upTo(2))
	})
}

func TestRelayLeavesASinkAloneThatAsksForIt(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", 1)
		r.sink.behave(func(context.Context, []events.Event) (int, error) {
			return 0, &sink.RetryAfter{Err: errBroken, After: 10 * time.Minute}
		})
		r.start()
		pass(9 * time.Minute)
		if r.sink.batches != 1 || r.lock.tries() != 1 {
			t.Errorf("%d attempts under %d leases, want one", r.sink.batches, r.lock.tries())
		}
		r.sink.behave(nil)
		pass(2 * time.Minute)
		r.wantStored("orders", upTo(1))
	})
}

// TestRelayServesManyStreamsInFewCalls has 10,000 streams with an event each before a
// receiver that takes 50 ms.
func TestRelayServesManyStreamsInFewCalls(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.BatchSize = 500
		for i := range 10_000 {
			r.log.add("stream-"+string(rune('a'+i%26))+time.Duration(i).String(), 1)
		}
		r.sink.behave(func(_ context.Context, batch []events.Event) (int, error) {
			time.Sleep(50 * time.Millisecond)
			return len(batch), nil
		})
		r.start()
		pass(10 * time.Second)
		if len(r.sink.stored) != 10_000 || r.sink.batches > 40 {
			t.Errorf("%d events are stored in %d batches", len(r.sink.stored), r.sink.batches)
		}
		if calls := r.log.count("backlog") + r.log.count("read") + r.log.count("acknowledge"); calls > 150 {
			t.Errorf("%d calls to the log", calls)
		}
	})
}
