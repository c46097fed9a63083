package lock

import "github.com/prometheus/client_golang/prometheus"

// keeperMetrics count the keeper's leases and their renewals.
type keeperMetrics struct {
	attempts *prometheus.CounterVec // nil where nothing is registered: there may be any number of names
	held     prometheus.Gauge
	renewals *prometheus.CounterVec
	lost     prometheus.Counter
}

func newKeeperMetrics(reg prometheus.Registerer) *keeperMetrics {
	m := &keeperMetrics{
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "observerd_leases_held",
			Help: "Leases that this process holds.",
		}),
		renewals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "observerd_lease_renewals_total",
			Help: "Renewals of leases by result; a call that failed counts once as error.",
		}, []string{"result"}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "observerd_leases_lost_total",
			Help: "Leases that ended before they were released.",
		}),
	}
	for _, result := range []string{Renewed.String(), Unknown.String(), Lost.String(), "error"} {
		m.renewals.WithLabelValues(result)
	}
	if reg != nil {
		m.attempts = prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "observerd_lock_attempts_total",
			Help: "Attempts to take a lock that were sent to its provider, with or without success, by the lock's name.",
		}, []string{"lock"})
		reg.MustRegister(m.attempts, m.held, m.renewals, m.lost)
	}
	return m
}

func (m *keeperMetrics) attempt(name string) {
	if m.attempts != nil {
		m.attempts.WithLabelValues(name).Inc()
	}
}
