package relay

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// waiting is how long the oldest event of each stream has waited for the sink. The ages
// are computed when they are collected, on the monotonic clock, so that they grow while a
// sink hangs. It is a [prometheus.Collector].
type waiting struct {
	desc *prometheus.Desc

	mu    sync.Mutex
	since map[string]time.Time // zero: nothing waits
}

// set replaces the ages of all streams.
func (w *waiting) set(ages map[string]time.Duration) {
	since := make(map[string]time.Time, len(ages))
	for stream, age := range ages {
		since[stream] = time.Time{}
		if age > 0 {
			since[stream] = time.Now().Add(-age)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = since
}

func (w *waiting) Describe(out chan<- *prometheus.Desc) { out <- w.desc }

func (w *waiting) Collect(out chan<- prometheus.Metric) {
	w.mu.Lock()
	since := w.since // It is replaced, never changed.
	w.mu.Unlock()
	for stream, at := range since {
		age := 0.0
		if !at.IsZero() {
			age = time.Since(at).Seconds()
		}
		out <- prometheus.MustNewConstMetric(w.desc, prometheus.GaugeValue, age, stream)
	}
}
