package schedule

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

// freshness knows since when an observer's stream may lack rows: all that were committed
// in the source before are in the event log. This node's own polls say so exactly; those
// of others are known from the database, without their horizon.
type freshness struct {
	mu sync.Mutex
	// complete is the end of what the stream has, on this node's monotonic clock; zero
	// for unknown, as in a first load.
	complete time.Time
	// behind is how far the horizon of this node's last poll lay behind the source's clock.
	behind time.Duration
	// noted is when this node last noted a success of its own, by the database's clock.
	noted time.Time
}

// polled takes in a poll of this node that succeeded. One that left rows unread says only
// something of a stream that was complete before.
func (f *freshness) polled(began, noted time.Time, stats observer.Stats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behind, f.noted = stats.HorizonLag, noted
	switch {
	case !stats.Full:
		f.complete = began.Add(-stats.HorizonLag)
	case stats.Lag > 0 && !f.complete.IsZero():
		f.complete = began.Add(-max(stats.Lag, stats.HorizonLag))
	}
}

// stored takes in what the database has of the stream; now is its clock.
func (f *freshness) stored(s turn.Stream, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.OKAt.IsZero() || s.Paused {
		f.complete = time.Time{}
		return
	}
	complete := time.Now().Add(s.OKAt.Sub(now) - max(s.Lag, f.behind))
	if f.complete.IsZero() && s.Lag == 0 || !f.complete.IsZero() && s.OKAt.After(f.noted) && complete.After(f.complete) {
		f.complete = complete
	}
}

// age returns how long ago the stream was complete; false for unknown.
func (f *freshness) age() (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(0, time.Since(f.complete)), !f.complete.IsZero()
}

// freshnesses are those of all observers of a node; nothing is added after they were
// registered. They are a [prometheus.Collector].
type freshnesses struct {
	desc *prometheus.Desc
	// of is by type and observer.
	of map[[2]string]*freshness
}

func newFreshnesses(types []Type) *freshnesses {
	f := &freshnesses{
		desc: prometheus.NewDesc("observerd_observer_freshness_seconds",
			"Time since the observer's stream was last known to be complete; absent before that, and while it is paused.",
			[]string{"type", "observer"}, nil),
		of: make(map[[2]string]*freshness),
	}
	for _, typ := range types {
		for _, o := range typ.Observers {
			f.of[[2]string{typ.Name, o.ID()}] = &freshness{}
		}
	}
	return f
}

func (f *freshnesses) Describe(out chan<- *prometheus.Desc) { out <- f.desc }

func (f *freshnesses) Collect(out chan<- prometheus.Metric) {
	for labels, one := range f.of {
		if age, known := one.age(); known {
			out <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, age.Seconds(), labels[:]...)
		}
	}
}
