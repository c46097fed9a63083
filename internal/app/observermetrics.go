package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/events"
)

// observerMetrics are those of observers that the scheduler does not know. A reload begins
// with new ones, so an observer that was removed has none.
type observerMetrics struct {
	found     *prometheus.CounterVec   // observer
	objective *prometheus.GaugeVec     // type, observer
	latency   *prometheus.HistogramVec // type
}

func newObserverMetrics(r prometheus.Registerer) observerMetrics {
	m := observerMetrics{
		found: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "observerd_reconcile_found_total", Help: "Events of rows that polls had missed and a reconcile has found.",
		}, []string{"observer"}),
		objective: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "observerd_observer_freshness_objective_seconds",
			Help: "How far back the observer's stream may be known to be complete; 0 for no objective.",
		}, []string{"type", "observer"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "observerd_event_log_latency_seconds",
			Help:    "Time from a row's own timestamp until its event was committed to the event log.",
			Buckets: events.LatencyBuckets(),
		}, []string{"type"}),
	}
	r.MustRegister(m.found, m.objective, m.latency)
	return m
}
