package schedule

import (
	"cmp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

// metrics count locks, polls and cycles. The label sets of all types exist from the
// start, so that a rate over them is never undefined.
type metrics struct {
	acquired, failed, panics, futureTurns *prometheus.CounterVec // type
	notAdmitted, passed, poison           *prometheus.CounterVec // type
	rows, events                          *prometheus.CounterVec // type, observer
	acquiredByNode                        *prometheus.CounterVec // node, type
	polls                                 *prometheus.CounterVec // type, outcome
	errors                                *prometheus.CounterVec // type, operation
	polling, acquire, hold                *prometheus.HistogramVec
	lastSuccess, paused, pauseEnd         *prometheus.GaugeVec // type, observer
	outdated, lag                         *prometheus.GaugeVec // type, observer
	failing, onlyPoison                   *reasons
	horizonLag                            *prometheus.GaugeVec // observer
	cycle                                 prometheus.Histogram
	cycleLocked, cycleSkipped, liveNodes  prometheus.Gauge
	waiting, passedRow                    prometheus.Gauge

	factory factory
}

// The operations of observerd_lock_errors_total.
const (
	opAcquire = "acquire"
	opRelease = "release"
)

func newMetrics(reg prometheus.Registerer) *metrics {
	f := factory{promauto.With(reg)}
	return &metrics{
		factory:        f,
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
		lastSuccess:    f.gauge("observerd_poll_last_success_timestamp_seconds", "When this node last polled the observer with success; 0 for never.", "type", "observer"),
		paused:         f.gauge("observerd_observer_paused", "1 when the observer was paused at this node's last turn of it.", "type", "observer"),
		pauseEnd:       f.gauge("observerd_observer_pause_end_timestamp_seconds", "When the pause of the observer ends by itself, as this node's last turn of it found; 0 when it is not paused, or without an end.", "type", "observer"),
		outdated:       f.gauge("observerd_observer_outdated", "1 when this node left the observer alone at its last turn of it, because the other nodes define it in another way.", "type", "observer"),
		lag:            f.gauge("observerd_observer_lag_seconds", "How far the rows lie behind the source's clock at which this node's last poll of the observer ended full; 0 when it came to the end.", "type", "observer"),
		failing:        f.reasons("observerd_observer_failing", "1 while the polls of the observer fail, as this node's last turn of it found, with the class of the failure; else 0, without a class."),
		onlyPoison:     f.reasons("observerd_observer_only_poison", "1 when this node's last poll of the observer that met rows made nothing but poison rows, with what makes them that; else 0, without a reason."),
		horizonLag:     f.gauge("observerd_horizon_lag_seconds", "How far the horizon of the last poll lay behind the source's clock.", "observer"),
		cycle:          f.NewHistogram(buckets("scheduler_observer_cycle_duration_seconds", "Duration of the cycles: all types due at one tick.", 600)),
		cycleLocked:    f.value("scheduler_observer_cycle_locked_count", "Types that this node polled in its last cycle."),
		cycleSkipped:   f.value("scheduler_observer_cycle_skipped_count", "Types that this node left to others in its last cycle."),
		waiting:        f.value("observerd_turns_waiting", "Turns that wait on this node behind those of other types."),
		passedRow:      f.value("observerd_turns_passed_over_since_poll", "Turns in which this node was first in line and another took them, since this node last polled."),
		liveNodes:      f.value("observerd_live_nodes", "Nodes that are alive, this one included."),
	}
}

// prepare creates the label sets of a type.
func (m *metrics) prepare(node string, typ Type, c *clock) {
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
		m.lastSuccess.WithLabelValues(typ.Name, o.ID())
		m.horizonLag.WithLabelValues(o.ID())
		m.lag.WithLabelValues(typ.Name, o.ID())
		m.showPause(typ.Name, turn.Stream{Stream: o.ID()})
		m.outdated.WithLabelValues(typ.Name, o.ID())
		m.failing.show(typ.Name, o.ID(), "")
		m.onlyPoison.show(typ.Name, o.ID(), "")
	}
	m.prepareComputed(typ, c)
}

// showPause shows whether a stream is paused, and until when.
func (m *metrics) showPause(typ string, s turn.Stream) {
	m.paused.WithLabelValues(typ, s.Stream).Set(truth(s.Paused))
	var end float64
	if !s.PausedUntil.IsZero() {
		end = float64(s.PausedUntil.UnixMilli()) / 1000
	}
	m.pauseEnd.WithLabelValues(typ, s.Stream).Set(end)
}

// reasons is a gauge with one series for each observer: 1 with a reason, 0 without.
type reasons struct {
	vec   *prometheus.GaugeVec // type, observer, reason
	mu    sync.Mutex
	shown map[[2]string]string // by type and observer
}

// show sets the series before it removes the one with the former reason, so that no scrape
// misses the observer. To look for that one would take as long as there are observers.
func (r *reasons) show(typ, id, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.vec.WithLabelValues(typ, id, reason).Set(truth(reason != ""))
	of := [2]string{typ, id}
	if before, ok := r.shown[of]; ok && before != reason {
		r.vec.DeleteLabelValues(typ, id, before)
	}
	r.shown[of] = reason
}

// showFailures shows how the polls of a stream fail, on whatever node.
func (m *metrics) showFailures(typ string, s turn.Stream) {
	reason := ""
	if s.Failures > 0 {
		reason = cmp.Or(s.FailureClass, string(observer.ClassUnknown))
	}
	m.failing.show(typ, s.Stream, reason)
}

// showOutcome shows why a poll has failed, and whether it made only poison. A poll that met
// no row says nothing of those.
func (m *metrics) showOutcome(typ, id string, stats observer.Stats, outcome turn.Outcome, err error) {
	switch outcome {
	case turn.OK:
		m.failing.show(typ, id, "")
	case turn.Error, turn.Unreachable:
		m.failing.show(typ, id, cmp.Or(string(observer.ClassOf(err)), string(observer.ClassUnknown)))
	}
	if stats.OnlyPoison != "" || stats.Readable {
		m.onlyPoison.show(typ, id, string(stats.OnlyPoison))
	}
}

// prepareComputed registers the gauges that are computed when they are collected.
func (m *metrics) prepareComputed(typ Type, c *clock) {
	activity, own := typ.Activity, prometheus.Labels{"type": typ.Name}
	gauge := func(name, help string, labels prometheus.Labels, value func() float64) {
		m.factory.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value)
	}
	seconds := func(name, help string, labels prometheus.Labels, d func() time.Duration) {
		gauge(name, help, labels, func() float64 { return d().Seconds() })
	}
	age := func(of action) func() time.Duration { return func() time.Duration { return activity.age(of) } }
	seconds("observerd_poll_interval_seconds", "Distance between the starts of a type's polls.", own,
		func() time.Duration { return typ.Interval })
	seconds("observerd_lock_ttl_seconds", "How long a type's lock outlives its last renewal.", own,
		func() time.Duration { return typ.Request.TTL })
	seconds("observerd_lock_held_seconds", "For how long this node has held the type's lock; 0 when it does not.", own, activity.held)
	seconds("observerd_lock_last_acquired_age_seconds", "Time since this node last acquired the type's lock.", own, age(acquired))
	seconds("observerd_poll_last_activity_age_seconds", "Time since this node last began, went on with or ended a poll of the type.",
		own, age(active))
	seconds("observerd_chunk_last_committed_age_seconds", "Time since this node last committed a chunk of the type.", own, age(committed))
	for _, o := range typ.Observers {
		own := prometheus.Labels{"type": typ.Name, "observer": o.ID()}
		seconds("observerd_poll_last_success_age_seconds", "Time since this node last polled the observer with success.", own, age(succeeded(o.ID())))
		seconds("observerd_observer_interval_seconds", "Distance between the starts of an observer's polls.", own,
			func() time.Duration { return typ.delay(o.ID()) })
		gauge("observerd_observer_suspended", "1 while no poll of the observer begins, because of not-between.", own,
			func() float64 { return truth(typ.suspended(o.ID(), c.now())) })
	}
}

// truth is the value of a gauge that says whether something is so.
func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// factory makes metrics, and registers them.
type factory struct{ promauto.Factory }

func (f factory) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (f factory) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return f.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func (f factory) reasons(name, help string) *reasons {
	return &reasons{vec: f.gauge(name, help, "type", "observer", "reason"), shown: make(map[[2]string]string)}
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
