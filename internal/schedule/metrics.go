package schedule

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/observerd/observerd/internal/turn"
)

// metrics count locks, polls and cycles; [conditions] show how types and observers are. The label sets of all types exist from the
// start, so that a rate over them is never undefined.
type metrics struct {
	acquired, failed, panics, futureTurns *prometheus.CounterVec // type
	notAdmitted, passed, poison           *prometheus.CounterVec // type
	rows, events                          *prometheus.CounterVec // type, observer
	acquiredByNode                        *prometheus.CounterVec // node, type
	polls                                 *prometheus.CounterVec // type, outcome
	errors                                *prometheus.CounterVec // type, operation
	polling, acquire, hold                *prometheus.HistogramVec
	cycle                                 prometheus.Histogram
	cycleLocked, cycleSkipped, liveNodes  prometheus.Gauge
	waiting, passedRow                    prometheus.Gauge
}

// The operations of observerd_lock_errors_total.
const (
	opAcquire = "acquire"
	opRelease = "release"
)

func newMetrics(reg prometheus.Registerer) *metrics {
	f := factory{promauto.With(reg)}
	return &metrics{
		acquired:       f.counter("scheduler_observer_lock_acquired_total", "Locks acquired.", "type"),
		failed:         f.counter("scheduler_observer_lock_failed_total", "Turns in which this node met another holder of the lock.", "type"),
		errors:         f.counter("observerd_lock_errors_total", "Attempts to acquire or release a lock that ended in an error.", "type", "operation"),
		panics:         f.counter("observerd_poll_panics_total", "Panics that were caught in a poll or a turn.", "type"),
		futureTurns:    f.counter("observerd_future_turns_ignored_total", "Turns recorded more than an interval ahead of the database's clock, which were ignored.", "type"),
		notAdmitted:    f.counter("observerd_turns_not_admitted_total", "Turns that waited on this node behind those of other types until the next was due.", "type"),
		passed:         f.counter("observerd_turns_passed_over_total", "Turns in which this node was first in line and another took them.", "type"),
		rows:           f.counter("observerd_rows_read_total", "Rows read from sources.", "type", "observer"),
		events:         f.counter("observerd_events_written_total", "Events written to the event log.", "type", "observer"),
		poison:         f.counter("observerd_poison_rows_total", "Rows that could not be read.", "type"),
		acquiredByNode: f.counter("scheduler_observer_lock_acquired_by_node_total", "Locks acquired, by node.", "node", "type"),
		polls:          f.counter("scheduler_observer_polls_total", "Polls of a type, by the worst outcome of its observers.", "type", "outcome"),
		polling:        f.histogram("scheduler_observer_polling_duration_seconds", "Duration of the polls of a type.", 600),
		acquire:        f.histogram("observerd_lock_acquire_duration_seconds", "Duration of attempts to acquire a lock, with or without success.", 10),
		hold:           f.histogram("observerd_lock_hold_duration_seconds", "Time for which a lock was held.", 600),
		cycle:          f.NewHistogram(buckets("scheduler_observer_cycle_duration_seconds", "Duration of the cycles: all types due at one tick.", 600)),
		cycleLocked:    f.value("scheduler_observer_cycle_locked_count", "Types that this node polled in its last cycle."),
		cycleSkipped:   f.value("scheduler_observer_cycle_skipped_count", "Types that this node left to others in its last cycle."),
		waiting:        f.value("observerd_turns_waiting", "Turns that wait on this node behind those of other types."),
		passedRow:      f.value("observerd_turns_passed_over_since_poll", "Turns in which this node was first in line and another took them, since this node last polled."),
		liveNodes:      f.value("observerd_live_nodes", "Nodes that are alive, this one included."),
	}
}

// prepare creates the label sets of a type.
func (m *metrics) prepare(node string, typ Type) {
	for _, counter := range []*prometheus.CounterVec{
		m.acquired, m.failed, m.notAdmitted, m.passed, m.panics, m.futureTurns, m.poison,
	} {
		counter.WithLabelValues(typ.Name)
	}
	for _, histogram := range []*prometheus.HistogramVec{m.polling, m.acquire, m.hold} {
		histogram.WithLabelValues(typ.Name)
	}
	for _, operation := range []string{opAcquire, opRelease} {
		m.errors.WithLabelValues(typ.Name, operation)
	}
	m.acquiredByNode.WithLabelValues(node, typ.Name)
	for _, outcome := range []turn.Outcome{turn.OK, turn.Error, turn.Lost, turn.Fenced} {
		m.polls.WithLabelValues(typ.Name, string(outcome))
	}
	for _, o := range typ.Observers {
		m.rows.WithLabelValues(typ.Name, o.ID())
		m.events.WithLabelValues(typ.Name, o.ID())
	}
}

// factory makes metrics, and registers them.
type factory struct{ promauto.Factory }

func (f factory) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (f factory) value(name, help string) prometheus.Gauge {
	return f.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// buckets reach from a millisecond to at least the given number of seconds.
func buckets(name, help string, seconds float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBucketsRange(0.001, seconds, 14)}
}

func (f factory) histogram(name, help string, seconds float64) *prometheus.HistogramVec {
	return f.NewHistogramVec(buckets(name, help, seconds), []string{"type"})
}
