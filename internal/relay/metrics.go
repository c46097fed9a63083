package relay

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/events"
)

// relayMetrics are those of one relay; the sink is a constant label, so that
// the relays of a process register side by side.
type relayMetrics struct {
	delivered prometheus.Counter
	failures  prometheus.Counter
	leads     prometheus.Gauge
	halted    prometheus.Gauge
	rewinds   prometheus.Counter
	paused    prometheus.Gauge
	parked    prometheus.Gauge
	parkedFor prometheus.Gauge
	lag       *prometheus.GaugeVec
	waiting   *waiting
	latency   *prometheus.HistogramVec // type
}

func newRelayMetrics(reg prometheus.Registerer, sink string) *relayMetrics {
	labels := prometheus.Labels{"sink": sink}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
	}
	m := &relayMetrics{
		delivered: counter("observerd_relay_delivered_events_total",
			"Events that the sink has stored and that were acknowledged."),
		failures: counter("observerd_relay_sink_failures_total",
			"Attempts to open the sink, or to deliver to it, that failed."),
		leads: gauge("observerd_relay_leader",
			"1 while this node feeds the sink; the sum over all nodes should be 1."),
		halted: gauge("observerd_relay_halted_streams",
			"Streams that are not delivered: the event log has a gap, the sink rejects an event, too many are parked, or it holds events that the log does not know."),
		rewinds: counter("observerd_relay_rewinds_total",
			"Streams of which the sink had lost events that it had stored, and that were delivered again."),
		paused: gauge("observerd_relay_paused",
			"1 while events wait for a sink that an operator, or its receiver, has paused."),
		parked: gauge("observerd_relay_parked_events",
			"Events that are parked because the sink has refused them, or an earlier one of their key, as the leading node sees it."),
		parkedFor: gauge("observerd_relay_parked_seconds",
			"How long the first of the parked events has been parked; 0 when there is none."),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "observerd_relay_lag_events", ConstLabels: labels,
			Help: "Events of the stream that the sink has not stored, as the leading node sees it.",
		}, []string{"stream"}),
		waiting: &waiting{desc: prometheus.NewDesc("observerd_relay_lag_seconds",
			"Age of the oldest event of the stream that the sink has not stored, as the leading node sees it; 0 when it has all.",
			[]string{"stream"}, labels)},
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "observerd_relay_delivery_latency_seconds", ConstLabels: labels,
			Help:    "Time from a row's own timestamp until the sink had stored its event.",
			Buckets: events.LatencyBuckets(),
		}, []string{"type"}),
	}
	if reg != nil {
		reg.MustRegister(m.delivered, m.failures, m.leads, m.halted, m.rewinds, m.paused, m.parked, m.parkedFor, m.lag, m.waiting, m.latency)
	}
	return m
}

// leave takes back what only a leading relay knows; a lag that stayed behind
// would be believed for ever.
func (m *relayMetrics) leave() {
	for _, gauge := range []prometheus.Gauge{m.leads, m.halted, m.paused, m.parked, m.parkedFor} {
		gauge.Set(0)
	}
	m.lag.Reset()
	m.waiting.set(nil)
}
