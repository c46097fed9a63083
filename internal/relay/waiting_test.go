package relay_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/relay"
	"github.com/observerd/observerd/internal/sink"
)

// wantLag complains unless the oldest event of orders has waited that long.
func (r *rig) wantLag(want time.Duration) {
	r.t.Helper()
	r.wantMetric("observerd_relay_lag_seconds", want.Seconds())
}

// TestLagInSecondsGrowsWhileASinkHangs reads the metric while nothing else happens.
func TestLagInSecondsGrowsWhileASinkHangs(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.Timeout = time.Hour
		r.log.add("orders", upTo(1)...)
		pass(time.Minute)
		r.sink.behave(func(ctx context.Context, _ []events.Event) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		r.start()
		pass(time.Second)
		r.wantLag(61 * time.Second)
		pass(10 * time.Minute)
		r.wantLag(11*time.Minute + time.Second)
		r.stop()
		if n, _ := testutil.GatherAndCount(r.reg, "observerd_relay_lag_seconds"); n != 0 {
			t.Error("a relay that does not lead still shows a lag")
		}
	})
}

// TestLagInSecondsOfANewLeader is of a relay that was restarted, or took over, and cannot
// open the sink.
func TestLagInSecondsOfANewLeader(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.Streams = []relay.Stream{{ID: "orders"}}
		r.opts.GiveUp = 1 << 20 // One that rests shows no lag.
		r.opts.Open = func(context.Context, sink.Term) (sink.Sink, error) { return nil, errBroken }
		r.log.add("orders", upTo(2)...)
		pass(time.Hour)
		r.start()
		pass(time.Second)
		r.wantLag(time.Hour + time.Second)
		r.log.setOffset("orders", 2)
		pass(time.Minute)
		r.wantLag(0)
	})
}

func TestLagInSecondsIsThatOfTheOldestEvent(t *testing.T) {
	bubble(t, func(r *rig) {
		r.sink.behave(func(_ context.Context, batch []events.Event) (int, error) {
			if batch[0].Seq == 1 {
				return 1, errBroken
			}
			return 0, errBroken
		})
		r.log.add("orders", 1)
		pass(time.Hour)
		r.log.add("orders", 2)
		pass(10 * time.Second)
		r.start()
		pass(10 * time.Second)
		r.wantLag(20 * time.Second)
	})
}

func TestLatencyToTheSink(t *testing.T) {
	bubble(t, func(r *rig) {
		r.opts.Streams = []relay.Stream{{ID: "orders", Type: "order", Zone: time.UTC}, {ID: "stock", Type: "inventory"}}
		pass(time.Hour) // The bubble begins at midnight.
		changed := func(stream string, seq int64, snapshot bool) {
			e := event(stream, seq)
			e.Time, e.Snapshot = time.Now().Add(-2*time.Second), snapshot
			r.log.streams[stream] = append(r.log.streams[stream], e)
		}
		changed("orders", 1, false)
		changed("orders", 2, true)
		changed("stock", 1, false)
		changed("removed", 1, false)
		pass(time.Minute)
		r.start()
		pass(time.Second)
		r.wantOffset("removed", 1)
		families, err := r.reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() != "observerd_relay_delivery_latency_seconds" {
				continue
			}
			if n := len(family.GetMetric()); n != 1 {
				t.Errorf("%d histograms, want that of type order", n)
			}
			if h := family.GetMetric()[0].GetHistogram(); h.GetSampleCount() != 1 || h.GetSampleSum() != 62 {
				t.Errorf("%d latencies with a sum of %v, want one of 62 s", h.GetSampleCount(), h.GetSampleSum())
			}
			return
		}
		t.Error("there is no histogram")
	})
}
