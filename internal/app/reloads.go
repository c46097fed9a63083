package app

import (
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Reloads remembers how the last reload of the configuration went, and the leftovers
// of nodes that did not stop in time. It outlives the successive nodes of one process:
// each of them shows it among its metrics, and counts as hanging while an earlier one
// does. Make one with [NewReloads]; it is safe for
// concurrent use.
type Reloads struct {
	mu    sync.Mutex
	begun int // reloads that have begun: each has its number, from 1
	last  outcome
	left  []<-chan struct{} // each is closed when nothing of its node goes on
}

// outcome is how a reload has ended.
type outcome struct {
	number  int       // of the reload; 0 is none yet
	code    int       // of the exit with which a start would have ended; 0 is a success
	changed int       // keys of the configuration that are others since
	at      time.Time // when the configuration that is at work was loaded
}

// NewReloads returns the state of a process that has loaded its configuration
// just now, with success, and has not reloaded yet.
func NewReloads() *Reloads {
	return &Reloads{last: outcome{at: time.Now()}}
}

// Begin records that a reload begins, before any of the configuration is read.
func (r *Reloads) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun++
}

// Done records that the reload has taken effect just now, and how many keys of the
// configuration have changed.
func (r *Reloads) Done(changed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = outcome{number: r.begun, changed: changed, at: time.Now()}
}

// Refused records that the reload has ended without a change, and the exit code that a
// start with that configuration would have.
func (r *Reloads) Refused(code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = outcome{number: r.begun, code: code, at: r.last.at}
}

// Undo records that a reload that took effect is reverted, because its node cannot
// work: it has not ended after all, and will with Refused. The restored configuration
// was loaded at that time.
func (r *Reloads) Undo(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = outcome{number: r.begun - 1, code: r.last.code, at: at}
}

// Loaded is when the configuration that is at work was loaded.
func (r *Reloads) Loaded() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.at
}

// leave records that a node did not stop in time; gone is closed when it has.
func (r *Reloads) leave(gone <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = append(r.left, gone)
}

// leftovers reports whether something of a former node still goes on.
func (r *Reloads) leftovers() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = slices.DeleteFunc(r.left, closed)
	return len(r.left) > 0
}

func (r *Reloads) state() (begun int, last outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun, r.last
}

func (r *Reloads) collectors() []prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return []prometheus.Collector{reloadMetrics{
		reloads: r,
		success: desc("observerd_config_last_reload_success",
			"1 when the last reload of the configuration took effect, or there was none yet; 0 when the former configuration goes on."),
		code: desc("observerd_config_last_reload_exit_code",
			"0 when the last reload of the configuration took effect, or there was none yet; else the exit code with which a start would have ended."),
		at: desc("observerd_config_last_reload_timestamp_seconds",
			"When the configuration that is at work was loaded: at the start, or by the last reload that took effect."),
		changed: desc("observerd_config_last_reload_changed_keys",
			"Keys of the configuration that the last reload has changed; 0 when it was refused, or there was none yet."),
		number: desc("observerd_config_last_reload_number",
			"The number, counted from 1, of the last reload that has ended, whether it took effect or not; 0 before the first."),
		begun:   desc("observerd_config_reloads_total", "Reloads that have begun."),
		process: desc("observerd_process_id", "The number of the process, as it sees it itself."),
	}}
}

// reloadMetrics are collected together: a reader that sees the end of a reload sees its
// result. The number of the process shows which process a signal reaches.
type reloadMetrics struct {
	reloads                                            *Reloads
	success, code, at, changed, number, begun, process *prometheus.Desc
}

// Describe implements [prometheus.Collector].
func (m reloadMetrics) Describe(descs chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(m, descs)
}

// Collect implements [prometheus.Collector].
func (m reloadMetrics) Collect(metrics chan<- prometheus.Metric) {
	begun, last := m.reloads.state()
	success := 0.0
	if last.code == 0 {
		success = 1
	}
	metrics <- prometheus.MustNewConstMetric(m.begun, prometheus.CounterValue, float64(begun))
	for desc, value := range map[*prometheus.Desc]float64{
		m.success: success, m.code: float64(last.code), m.at: float64(last.at.UnixMilli()) / 1000,
		m.changed: float64(last.changed), m.number: float64(last.number), m.process: float64(os.Getpid()),
	} {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
}
