package access

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/observerd/observerd/internal/observer"
)

// Metrics tell how the sources of a process fare. Make them with [NewMetrics].
type Metrics struct {
	up, waiting *prometheus.GaugeVec
	failures    *prometheus.CounterVec
}

// NewMetrics registers the metrics of all sources of a process.
func NewMetrics(r prometheus.Registerer) *Metrics {
	made := promauto.With(r)
	return &Metrics{
		up: made.NewGaugeVec(prometheus.GaugeOpts{
			Name: "observerd_source_up", Help: "1 when the last attempt of this node to reach the source went well, else 0.",
		}, []string{"source"}),
		waiting: made.NewGaugeVec(prometheus.GaugeOpts{
			Name: "observerd_source_polls_waiting", Help: "Polls that wait on this node until others of the source have begun to read.",
		}, []string{"source"}),
		failures: made.NewCounterVec(prometheus.CounterOpts{
			Name: "observerd_source_failures_total", Help: "Failures of a source that this node has met, by class.",
		}, []string{"source", "class"}),
	}
}

// prepare makes the counters of a source, so that they begin with 0.
func (m *Metrics) prepare(name string) {
	for _, class := range []observer.Class{
		observer.ClassUnreachable, observer.ClassResource, observer.ClassKilled, observer.ClassTimeout,
		observer.ClassCredentials, observer.ClassSettings, observer.ClassQuery, observer.ClassData,
		observer.ClassRetry, observer.ClassDriver, observer.ClassUnknown,
	} {
		m.failures.WithLabelValues(name, string(class))
	}
}

// record counts what came of a call.
func (m *Metrics) record(name string, class observer.Class, up bool) {
	if m == nil {
		return
	}
	value := 0.0
	if up {
		value = 1
	}
	m.up.WithLabelValues(name).Set(value)
	if class != "" {
		m.failures.WithLabelValues(name, string(class)).Inc()
	}
}
