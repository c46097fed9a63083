package guard

import (
	"errors"
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics count what a guard does.
type metrics struct {
	all                  *prometheus.Registry
	timeouts, seenErrors prometheus.Counter
	processed, failures  *prometheus.CounterVec
	wait, hold, handler  prometheus.Histogram
}

var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_]+`)

func newMetrics(region, consumer string) *metrics {
	prefix := notInNames.ReplaceAllString(region, "_") + "_"
	all := prometheus.NewRegistry()
	with := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"consumer": consumer}, all))
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: prefix + name, Help: help}
	}
	seconds := func(name, help string) prometheus.Histogram {
		return with.NewHistogram(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)})
	}
	return &metrics{
		all:        all,
		timeouts:   with.NewCounter(counter("timeout_total", "Events whose key was held by another consumer until the wait ended.")),
		seenErrors: with.NewCounter(counter("seen_errors_total", "Requests to what remembers committed events that failed; they were passed over.")),
		processed: with.NewCounterVec(counter("processed_total",
			"Events that are committed: applied by this process, or duplicates, by the layer that knew them (seen, inbox, constraint)."), []string{"outcome", "layer"}),
		failures: with.NewCounterVec(counter("failures_total", "Events that were not committed, by why."), []string{"kind"}),
		wait:     seconds("wait_seconds", "Time until an event had the lock of its key, or had it not."),
		hold:     seconds("hold_seconds", "Time for which an event had the lock of its key."),
		handler:  seconds("handler_seconds", "Time of the handler of an event."),
	}
}

func (m *metrics) done(o Outcome, err error) {
	switch {
	case err != nil:
		m.failures.WithLabelValues(kindOf(err)).Inc()
		if errors.Is(err, ErrLockTimeout) {
			m.timeouts.Inc()
		}
	case o.Duplicate():
		m.processed.WithLabelValues("duplicate", string(o)).Inc()
	default:
		m.processed.WithLabelValues("applied", "").Inc()
	}
}

// Collector returns the metrics of the guard, for a registry. Their names begin with the region
// of the locks: payment_lock_timeout_total for payment-lock. The label consumer tells guards apart.
func (g *Guard) Collector() prometheus.Collector { return g.metrics.all }
