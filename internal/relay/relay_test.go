package relay_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/relay"
	"github.com/observerd/observerd/internal/sink"
)

// rig is a relay with everything around it faked, inside a synctest bubble.
type rig struct {
	t     *testing.T
	log   *fakeLog
	lock  *fakeLock
	sink  *fakeSink
	opts  relay.Options
	reg   *prometheus.Registry
	out   *output
	relay *relay.Relay
	stop  func()
}

// giveUp is the number of failures after which a relay gives up that was not told another.
const giveUp = 8

// output is what was logged.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) count(message string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Count(o.buf.String(), message)
}

// bubble runs the story in fake time, and stops the relay at its end.
func bubble(t *testing.T, story func(r *rig)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, log: newFakeLog(), lock: &fakeLock{}, sink: &fakeSink{}, reg: prometheus.NewRegistry(), out: &output{}}
		r.opts = relay.Options{
			Sink: "screen", Log: r.log, Lead: r.lock.Lead, BatchSize: 10,
			Open:       func(context.Context, sink.Term) (sink.Sink, error) { return r.sink, nil },
			Logger:     slog.New(slog.NewTextHandler(r.out, nil)),
			Registerer: r.reg,
		}
		story(r)
		if r.stop != nil {
			r.stop()
		}
	})
}

// start runs the relay until stop, which waits for it.
func (r *rig) start() {
	r.t.Helper()
	r.relay = relay.New(r.opts)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.relay.Run(ctx) })
	r.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
}

// pass lets fake time pass, and everything settle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *rig) wantStored(stream string, want []int64) {
	r.t.Helper()
	if got := r.sink.seqs(stream); !slices.Equal(got, want) {
		r.t.Errorf("stored of %s: %v, want %v", stream, got, want)
	}
}

func (r *rig) wantOffset(stream string, want int64) {
	r.t.Helper()
	if got := r.log.offset(stream); got != want {
		r.t.Errorf("offset of %s: %d, want %d", stream, got, want)
	}
}

func (r *rig) wantLogged(message string, times int) {
	r.t.Helper()
	if got := r.out.count(message); got != times {
		r.t.Errorf("%q was logged %d times, want %d", message, got, times)
	}
}

func TestRelayDeliversInOrder(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", upTo(25)...)
		r.log.add("stock", upTo(3)...)
		r.start()
		pass(time.Millisecond)
		r.wantStored("orders", upTo(25))
		r.wantStored("stock", upTo(3))
		r.wantOffset("orders", 25)
		r.wantOffset("stock", 3)
		if r.sink.batches != 3 {
			t.Errorf("%d batches, want 3: those of 28 events", r.sink.batches)
		}
	})
}

func TestRelayServesStreamsFairly(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("a-large", upTo(1000)...)
		r.log.add("small", upTo(1)...)
		r.start()
		pass(time.Millisecond)
		position := slices.IndexFunc(r.sink.stored, func(e events.Event) bool { return e.Stream == "small" })
		if position < 0 || position >= 10 {
			t.Errorf("the small stream came behind %d events, want it in the first batch", position)
		}
	})
}

func TestRelayWaitsForPollOrWake(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		pass(time.Millisecond)
		r.log.add("orders", 1)
		pass(500*time.Millisecond - 2*time.Millisecond)
		r.wantStored("orders", nil)
		pass(2 * time.Millisecond)
		r.wantStored("orders", upTo(1))

		r.log.add("orders", 2)
		r.relay.Wake()
		r.relay.Wake()
		synctest.Wait()
		r.wantStored("orders", upTo(2))
	})
}

func TestRelayStaysIdleWithoutEvents(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		pass(time.Minute)
		if got := r.log.count("backlog"); got < 119 || got > 122 {
			t.Errorf("%d looks in a minute, want one each 500 ms", got)
		}
	})
}

func TestRelayAcknowledgesTheStoredPrefixOnly(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", upTo(10)...)
		r.sink.behave(func(context.Context, []events.Event) (int, error) { return 3, errBroken })
		r.start()
		pass(time.Millisecond)
		r.wantOffset("orders", 3)
		r.wantStored("orders", upTo(3))
		r.sink.behave(nil)
		pass(time.Minute)
		r.wantStored("orders", upTo(10))
		r.wantOffset("orders", 10)
		r.wantLogged("Sink fails, repeating", 1)
		r.wantLogged("Sink works again", 1)
	})
}

func TestRelayCallsASinkAgainThatTakesPartOfABatch(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", upTo(10)...)
		r.sink.behave(func(_ context.Context, batch []events.Event) (int, error) { return min(4, len(batch)), nil })
		r.start()
		pass(time.Millisecond)
		r.wantStored("orders", upTo(10))
		if got := r.log.count("read"); got != 1 {
			t.Errorf("the batch was read %d times, want once", got)
		}
	})
}

func TestRelayRefusesASinkThatStoresNonsense(t *testing.T) {
	for name, n := range map[string]int{"nothing": 0, "too much": 11, "less than nothing": -1} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.log.add("orders", upTo(10)...)
				r.sink.behave(func(context.Context, []events.Event) (int, error) { return n, nil })
				r.start()
				pass(10 * time.Second)
				r.wantOffset("orders", 0)
				if b := r.sink.batches; b < 2 || b > 10 {
					t.Errorf("%d attempts in 10 s, want a few, with pauses", b)
				}
			})
		})
	}
}

func TestRelayHaltsAStreamWithAGap(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", 1, 2, 5, 6)
		r.log.add("stock", upTo(2)...)
		r.start()
		pass(time.Minute)
		r.wantStored("orders", upTo(2))
		r.wantOffset("orders", 2)
		r.wantStored("stock", upTo(2))
		r.wantLogged("Stream halted", 1)
		r.wantMetric("observerd_relay_halted_streams", 1)
		r.wantNoted("", "orders")

		r.log.setOffset("orders", 4) // An operator accepts the loss.
		pass(time.Second)
		r.wantStored("orders", []int64{1, 2, 5, 6})
		r.wantMetric("observerd_relay_halted_streams", 0)
		r.wantNoted("", "orders", "")
	})
}

func TestRelayBeginsWhereRetentionLeftTheLog(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", 500, 501)
		r.start()
		pass(time.Millisecond)
		r.wantStored("orders", []int64{500, 501})
		r.wantOffset("orders", 501)
	})
}

func TestRelayStepsBackWhenStale(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", upTo(1)...)
		r.start()
		pass(time.Millisecond)
		if _, err := r.log.Claim(t.Context(), "screen", 99); err != nil { // A later relay.
			t.Fatal(err)
		}
		r.log.add("orders", 2)
		pass(time.Second)
		r.wantOffset("orders", 1)
		if r.sink.closed != 1 || len(r.lock.releases) != 1 {
			t.Errorf("closed %d times, released %d times, want once each", r.sink.closed, len(r.lock.releases))
		}
	})
}

func TestRelayLosesItsLeaseInTheMiddle(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", upTo(10)...)
		r.sink.behave(func(ctx context.Context, _ []events.Event) (int, error) {
			r.lock.expire(true)
			<-ctx.Done()
			return 4, context.Cause(ctx)
		})
		r.start()
		pass(time.Minute)
		r.wantStored("orders", upTo(4))
		r.wantOffset("orders", 0)
		if got := r.log.count("acknowledge"); got != 0 {
			t.Errorf("%d acknowledgements after the lease was lost, want none", got)
		}
		if r.sink.closed != 1 {
			t.Errorf("the sink was closed %d times, want once", r.sink.closed)
		}
		r.wantLogged("Relay lost the lead", 1)
		r.wantMetric("observerd_relay_leader", 0)

		r.sink.behave(nil)
		r.lock.expire(false) // The other's lease ends, ours can begin.
		pass(time.Minute)
		r.wantOffset("orders", 10)
	})
}

func TestRelayRepeatsAnAcknowledgementWhoseAnswerWasLost(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", upTo(2)...)
		r.log.add("stock", upTo(2)...)
		r.opts.BatchSize = 1
		lost := 3
		r.log.fail(nil, func(call string) error {
			if call != "acknowledge" || lost == 0 {
				return nil
			}
			lost--
			return errDown
		})
		r.start()
		pass(time.Millisecond)
		r.wantStored("stock", nil) // Not before the first batch is settled.
		pass(time.Minute)
		r.wantStored("orders", upTo(2))
		r.wantStored("stock", upTo(2))
		r.wantOffset("stock", 2)
	})
}

// TestRelayDropsABatchOfAnotherLog lets the log change between a delivery and its
// acknowledgement. What the log holds then reaches the sink, in the same term.
func TestRelayDropsABatchOfAnotherLog(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(r *rig, other events.Event)
		other  bool
		// stored are the sequences that the sink is given in all.
		stored []int64
	}{
		"an inner event is another": {func(r *rig, other events.Event) {
			r.log.goBack("orders", 2, other, event("orders", 5), event("orders", 6))
		}, true, []int64{1, 2, 3, 4, 5, 6, 3, 4, 5, 6}},
		"it ends earlier": {func(r *rig, other events.Event) { r.log.goBack("orders", 2, other) }, true, []int64{1, 2, 3, 4, 5, 6, 3, 4}},
		"the offset went back": {func(r *rig, _ events.Event) { r.log.setOffset("orders", 1) }, false,
			[]int64{1, 2, 3, 4, 5, 6, 2, 3, 4, 5, 6}},
		"an operator skips": {func(r *rig, _ events.Event) { r.log.setOffset("orders", 5) }, false, []int64{1, 2, 3, 4, 5, 6, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.log.add("orders", upTo(2)...)
				r.start()
				pass(time.Millisecond)
				r.wantOffset("orders", 2)
				r.log.add("orders", 3, 4, 5, 6)
				r.log.fail(func(call string) error {
					if call == "acknowledge" {
						return errDown
					}
					return nil
				}, nil)
				pass(time.Minute)
				r.wantStored("orders", upTo(6))
				other := event("orders", 4)
				other.ID = uuid.New()
				tc.change(r, other)
				r.log.fail(nil, nil)
				pass(time.Minute)
				r.wantStored("orders", tc.stored)
				r.wantOffset("orders", tc.stored[len(tc.stored)-1])
				if r.sink.has(other.ID) != tc.other {
					t.Errorf("the other event is in the sink: %t, want %t", !tc.other, tc.other)
				}
				r.wantLogged("Event log changed", 1)
				r.wantLogged("Relay leads", 1)
			})
		})
	}
}

// TestRelayWhoseClaimWentBackBeginsAnew takes its claim back with the log. With its token
// of the former log it would keep all later relays from the sink.
func TestRelayWhoseClaimWentBackBeginsAnew(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", upTo(2)...)
		r.start()
		pass(time.Millisecond)
		r.wantOffset("orders", 2)
		former := r.log.epochNow()
		r.log.setEpoch(0)
		r.log.add("orders", 3, 4)
		pass(time.Minute)
		r.wantStored("orders", []int64{1, 2, 3, 4, 3, 4})
		r.wantOffset("orders", 4)
		if now := r.log.epochNow(); now <= former {
			t.Errorf("claimed with %d after %d, want a new token", now, former)
		}
		r.wantLogged("Relay leads", 2)
	})
}

// TestRelaySettlesFirst fails acknowledgements altogether: what the sink has
// stored is not delivered again, and no other batch joins it, so that a crash
// now would repeat one batch only.
func TestRelaySettlesFirst(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", upTo(2)...)
		r.log.add("stock", upTo(2)...)
		r.opts.BatchSize = 1
		r.log.fail(func(call string) error {
			if call == "acknowledge" {
				return errDown
			}
			return nil
		}, nil)
		r.start()
		pass(time.Minute)
		r.wantStored("orders", upTo(1))
		r.wantStored("stock", nil)
		r.log.fail(nil, nil)
		pass(time.Minute)
		r.wantStored("orders", upTo(2))
		r.wantStored("stock", upTo(2))
		r.wantOffset("orders", 2)
	})
}

func TestRelayClaimsBeforeItDelivers(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", 1)
		r.sink.behave(func(context.Context, []events.Event) (int, error) {
			if r.log.epochNow() != 1 {
				r.t.Error("delivered before the sink was claimed")
			}
			return 1, nil
		})
		r.start()
		pass(time.Millisecond)
		r.wantOffset("orders", 1)
		r.lock.expire(false)
		pass(time.Minute)
		if got := r.log.epochNow(); got != 2 {
			t.Errorf("epoch %d in the second term, want 2", got)
		}
	})
}

func TestRelayWaitsForTheDatabase(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", upTo(2)...)
		r.log.fail(func(string) error { return errDown }, nil)
		r.start()
		pass(time.Hour)
		r.wantLogged("Coordination database fails, relay waits", 1)
		r.wantStored("orders", nil)
		if got := r.log.count("claim"); got > 600 {
			t.Errorf("%d attempts in an hour, want growing pauses", got)
		}
		r.log.fail(nil, nil)
		pass(time.Minute)
		r.wantLogged("Coordination database answers again", 1)
		r.wantStored("orders", upTo(2))
		if r.lock.tries() != 1 {
			t.Errorf("%d leases, want the first kept", r.lock.tries())
		}
	})
}

// TestRelayBeginsAnewWithASinkThatFails shows that the outage of the database before does
// not lengthen the pauses of the sink: three attempts take less than 2 seconds.
func TestRelayBeginsAnewWithASinkThatFails(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", 1)
		r.log.fail(func(string) error { return errDown }, nil)
		var tried atomic.Int64
		r.sink.behave(func(_ context.Context, batch []events.Event) (int, error) {
			if tried.Add(1) < 3 {
				return 0, errBroken
			}
			return len(batch), nil
		})
		r.start()
		pass(time.Hour)
		r.log.fail(nil, nil)
		for tried.Load() == 0 {
			pass(time.Second)
		}
		pass(2 * time.Second)
		r.wantStored("orders", upTo(1))
	})
}

func TestRelayStandsByQuietly(t *testing.T) {
	bubble(t, func(r *rig) {
		r.lock.expire(true) // Another leads.
		r.log.add("orders", 1)
		r.start()
		pass(time.Minute)
		if got := r.lock.tries(); got < 10 || got > 16 {
			t.Errorf("%d attempts to lead in a minute, want about 12", got)
		}
		r.lock.refuse(errDown)
		pass(time.Minute)
		r.wantLogged("Coordination database fails, relay waits", 1)
		r.wantStored("orders", nil)
		r.lock.refuse(nil)
		r.lock.expire(false)
		pass(10 * time.Second)
		r.wantStored("orders", upTo(1))
	})
}

func TestRelayLetsAnotherNodeTryABrokenSink(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", 1)
		broken := *r
		broken.sink = &fakeSink{deliver: func(context.Context, []events.Event) (int, error) { return 0, errBroken }}
		broken.opts.Open = func(context.Context, sink.Term) (sink.Sink, error) { return broken.sink, nil }
		broken.opts.Registerer = nil
		broken.start()
		pass(time.Millisecond)
		r.start()
		pass(2 * time.Minute)
		r.wantStored("orders", upTo(1))
		if broken.sink.batches != giveUp {
			t.Errorf("the broken node tried %d times, want %d", broken.sink.batches, giveUp)
		}
		r.wantNoted(errBroken.Error(), "") // The other node has noted that it works.
		broken.stop()
	})
}

func TestRelayKeepsAHaltedSink(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", 1)
		halted := fmt.Errorf("%w: its file became shorter", sink.ErrHalted)
		r.sink.behave(func(context.Context, []events.Event) (int, error) { return 0, halted })
		r.start()
		pass(time.Millisecond)
		other := *r
		other.sink, other.opts.Registerer = &fakeSink{}, nil
		other.opts.Open = func(context.Context, sink.Term) (sink.Sink, error) { return other.sink, nil }
		other.start()
		defer other.stop()
		pass(10 * time.Minute)
		if tried := r.sink.batches; tried <= giveUp {
			t.Errorf("the sink was asked %d times in 10 minutes", tried)
		}
		r.wantLogged("Sink halted", 1)
		r.wantMetric("observerd_relay_lag_events", 1)
		r.sink.behave(nil)
		pass(time.Minute)
		r.wantStored("orders", upTo(1))
		r.wantLogged("Sink works again", 1)
		r.wantLogged("Relay leads", 1)
		r.wantNoted("its file became shorter", "")

		r.sink.behave(func(context.Context, []events.Event) (int, error) { return 0, halted })
		r.log.add("orders", 2)
		pass(time.Minute)
		r.wantLogged("Sink halted", 2)
		other.wantStored("orders", nil)
	})
}

// wantNoted wants these to be the states of the sink that the relays have noted, in this
// order: a part of each; empty for a sink that works.
func (r *rig) wantNoted(parts ...string) {
	r.t.Helper()
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	ok := len(r.log.noted) == len(parts)
	for i := range min(len(parts), len(r.log.noted)) {
		ok = ok && strings.Contains(r.log.noted[i], parts[i]) && (parts[i] != "" || r.log.noted[i] == "")
	}
	if !ok {
		r.t.Errorf("noted %q, want %q", r.log.noted, parts)
	}
}

func TestRelayRepeatsOpening(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", 1)
		opened := 0
		r.opts.Open = func(ctx context.Context, _ sink.Term) (sink.Sink, error) {
			if opened++; opened < 4 {
				return nil, errBroken
			}
			return r.sink, nil
		}
		r.start()
		pass(10 * time.Second)
		r.wantStored("orders", upTo(1))
		r.wantMetric("observerd_relay_sink_failures_total", 3)
	})
}

func TestRelayServesOthersWhileAStreamIsRefused(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("bad", upTo(5)...)
		r.log.add("good", upTo(50)...)
		r.sink.behave(func(_ context.Context, batch []events.Event) (int, error) {
			if batch[0].Stream == "bad" {
				return 0, errBroken
			}
			return len(batch), nil
		})
		r.start()
		pass(5 * time.Second)
		r.wantStored("good", upTo(50))
	})
}

func TestRelayShutsDown(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", upTo(10)...)
		r.sink.behave(func(ctx context.Context, _ []events.Event) (int, error) {
			<-ctx.Done()
			return 6, ctx.Err()
		})
		r.start()
		pass(time.Millisecond)
		r.stop()
		r.wantOffset("orders", 6)
		if r.sink.closed != 1 {
			t.Errorf("the sink was closed %d times, want once", r.sink.closed)
		}
		if len(r.lock.releases) != 1 || r.lock.releases[0] != nil {
			t.Errorf("releases: %v, want one, on a context that is not done", r.lock.releases)
		}
	})
}

func TestRelayShutsDownWithTheDatabaseGone(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", 1)
		r.log.fail(func(call string) error {
			if call == "acknowledge" {
				return errDown
			}
			return nil
		}, nil)
		r.start()
		pass(time.Minute)
		began := time.Now()
		r.stop()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("shutdown took %v", took)
		}
	})
}

func TestRelayBoundsAHangingSink(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", 1)
		r.sink.behave(func(ctx context.Context, _ []events.Event) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		r.start()
		pass(30*time.Second + time.Millisecond)
		r.wantLogged("Sink fails, repeating", 1)
	})
}

// pulse records the loops that are alive, and until when.
type pulse struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (p *pulse) Beat(loop string, within time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if within <= 0 {
		delete(p.until, loop)
		return
	}
	p.until[loop] = time.Now().Add(within)
}

func (p *pulse) alive(loop string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.until[loop])
}

func TestRelayBeats(t *testing.T) {
	bubble(t, func(r *rig) {
		beats := &pulse{until: map[string]time.Time{}}
		r.opts.Beat = beats.Beat
		r.log.fail(func(string) error { return errDown }, nil)
		r.start()
		for range 100 {
			pass(10 * time.Second)
			if !beats.alive("relay screen") {
				t.Fatal("a relay that waits for the database looks stuck")
			}
		}
		r.stop()
		if len(beats.until) != 0 {
			t.Error("a relay that was stopped is expected to beat")
		}
	})
}

func TestRelayLag(t *testing.T) {
	bubble(t, func(r *rig) {
		r.log.add("orders", upTo(5)...)
		r.sink.behave(func(context.Context, []events.Event) (int, error) { return 2, errBroken })
		r.start()
		pass(time.Millisecond)
		r.wantMetric("observerd_relay_lag_events", 5)
		r.sink.behave(nil)
		pass(time.Second)
		r.wantMetric("observerd_relay_lag_events", 0)
		r.wantMetric("observerd_relay_delivered_events_total", 5)
		r.wantMetric("observerd_relay_leader", 1)
		r.stop()
		if n, _ := testutil.GatherAndCount(r.reg, "observerd_relay_lag_events"); n != 0 {
			t.Error("a relay that does not lead still shows a lag")
		}
	})
}

// TestLagOfANewLeader: a stream without a backlog shows that at once.
func TestLagOfANewLeader(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.Streams = []relay.Stream{{ID: "orders"}, {ID: "stock"}}
		r.log.fail(func(string) error { return errDown }, nil)
		r.start()
		pass(time.Millisecond)
		if n, _ := testutil.GatherAndCount(r.reg, "observerd_relay_lag_events"); n != 0 {
			t.Errorf("%d lags are shown before the first look", n)
		}
		r.log.fail(nil, nil)
		pass(time.Minute)
		if n, _ := testutil.GatherAndCount(r.reg, "observerd_relay_lag_events"); n != 2 {
			t.Errorf("%d lags are shown, want those of two streams", n)
		}
		r.wantMetric("observerd_relay_lag_events", 0)
		r.stop()
		if n, _ := testutil.GatherAndCount(r.reg, "observerd_relay_lag_events"); n != 0 {
			t.Error("a relay that does not lead still shows a lag")
		}
	})
}

func (r *rig) wantMetric(name string, want float64) {
	r.t.Helper()
	families, err := r.reg.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		m := f.GetMetric()[0]
		if got := m.GetGauge().GetValue() + m.GetCounter().GetValue(); got != want {
			r.t.Errorf("%s is %v, want %v", name, got, want)
		}
		return
	}
	r.t.Errorf("there is no %s", name)
}
