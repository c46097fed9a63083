package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/lock"
)

// DefaultMetricsPrefix is how the names of the metrics begin.
const DefaultMetricsPrefix = "observerd_locks"

// The reasons of acquisitions that failed.
const (
	reasonContention = "contention"
	reasonAPI        = "api_error"
	reasonPolicy     = "policy"
	reasonTimeout    = "timeout"
)

var kindLabels = []string{"provider", "subject", "predicate", "mode"}

// metrics count what the manager does. A lock that the vocabulary does not know is not
// counted, so the labels are bounded.
type metrics struct {
	provider string

	attempts, successes, failures, releases, retries, stale, overstayed *prometheus.CounterVec
	acquiring, holding                                                  *prometheus.HistogramVec
	active                                                              *prometheus.GaugeVec

	mu    sync.Mutex
	since time.Time
	stats map[kind]*Stat
}

var prefixForm = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func newMetrics(o Options, provider string) (*metrics, error) {
	if !prefixForm.MatchString(o.MetricsPrefix) {
		return nil, fmt.Errorf("locks: Options.MetricsPrefix %q is not a valid prefix of a metric's name; set gateway_lock, for example", o.MetricsPrefix)
	}
	m := &metrics{provider: provider, since: time.Now(), stats: make(map[kind]*Stat)}
	var errs []error
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return shared(o.Registerer, &errs, prometheus.NewCounterVec(prometheus.CounterOpts{Name: o.MetricsPrefix + "_" + name, Help: help}, append(slices.Clone(kindLabels), labels...)))
	}
	seconds := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return shared(o.Registerer, &errs, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: o.MetricsPrefix + "_" + name, Help: help, Buckets: buckets}, kindLabels))
	}
	m.attempts = counter("acquisition_attempts_total", "Calls that wanted a lock, however often each tried.")
	m.successes = counter("acquisition_successes_total", "Calls that got the lock.")
	m.failures = counter("acquisition_failures_total", "Calls that did not get the lock: another had it (contention), a policy refused it, the caller's time was over (timeout), or the provider failed (api_error).", "reason")
	m.retries = counter("retries_total", "Attempts after the first of a call.")
	m.releases = counter("releases_total", "Locks that were released.")
	m.stale = counter("stale_recovered_total", "Locks that were taken from a holder which did not release them.")
	m.overstayed = counter("overstayed_total", "Leases that ended because of max-hold; their holders may still be working.")
	m.acquiring = seconds("acquisition_duration_seconds", "Time from the call until the lock was acquired, or could not be.", prometheus.ExponentialBuckets(0.001, 4, 9))
	m.holding = seconds("hold_duration_seconds", "Time for which a lock was held.", prometheus.ExponentialBuckets(0.01, 4, 10))
	m.active = shared(o.Registerer, &errs, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: o.MetricsPrefix + "_active_count", Help: "Locks that this process holds."}, kindLabels))
	return m, errors.Join(errs...)
}

// shared registers a collector, and returns the one that is to be used: managers that share a
// registerer and a prefix share the collectors too.
func shared[C prometheus.Collector](reg prometheus.Registerer, errs *[]error, c C) C {
	if reg == nil {
		return c
	}
	err := reg.Register(c)
	if there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if same, ok := there.ExistingCollector.(C); ok {
			return same
		}
	}
	if err != nil {
		*errs = append(*errs, fmt.Errorf("locks: Options.Registerer has another metric of that name; set Options.MetricsPrefix: %w", err))
	}
	return c
}

func (m *metrics) labels(d Descriptor, more ...string) []string {
	return append([]string{m.provider, d.Subject, d.Predicate, string(d.Mode)}, more...)
}

// stat returns the figures of the lock's kind. The caller has locked them.
func (m *metrics) stat(d Descriptor) *Stat {
	k := kind{d.Subject, d.Predicate}
	if m.stats[k] == nil {
		m.stats[k] = &Stat{Subject: d.Subject, Predicate: d.Predicate}
	}
	return m.stats[k]
}

// acquired counts a call that began at that moment and tried so often. The leases are nil
// when it failed.
func (m *metrics) acquired(ctx context.Context, ds []Descriptor, began time.Time, tries int, leases []*lock.Lease, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, d := range ds {
		labels, s := m.labels(d), m.stat(d)
		m.attempts.WithLabelValues(labels...).Inc()
		m.retries.WithLabelValues(labels...).Add(float64(tries - 1))
		m.acquiring.WithLabelValues(labels...).Observe(time.Since(began).Seconds())
		if err != nil {
			reason := reasonOf(ctx, err)
			m.failures.WithLabelValues(m.labels(d, reason)...).Inc()
			s.Failures++
			if reason == reasonContention {
				s.Contended++
			}
			continue
		}
		m.successes.WithLabelValues(labels...).Inc()
		m.active.WithLabelValues(labels...).Inc()
		s.Acquisitions++
		s.Active++
		s.ttls += d.TTL
		if leases[i].Grant().Recovered {
			m.stale.WithLabelValues(labels...).Inc()
		}
	}
}

// reasonOf returns why a call failed. An attempt has a deadline of its own, so the error's
// deadline need not be the caller's, and the caller's cause may be any error.
func reasonOf(ctx context.Context, err error) string {
	switch {
	case errors.As(err, new(*PolicyError)):
		return reasonPolicy
	case errors.Is(err, ErrHeld), errors.Is(err, ErrRenewed), errors.Is(err, ErrEnded):
		return reasonContention
	case ctx.Err() != nil:
		return reasonTimeout
	}
	return reasonAPI
}

// released counts a lock that was held since that moment.
func (m *metrics) released(d Descriptor, since time.Time) {
	labels := m.labels(d)
	m.active.WithLabelValues(labels...).Dec()
	m.releases.WithLabelValues(labels...).Inc()
	m.holding.WithLabelValues(labels...).Observe(time.Since(since).Seconds())
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stat(d)
	s.Active--
	s.ttls -= d.TTL
}

// Stat are figures of a kind of locks, of one manager since it was opened.
type Stat struct {
	Subject, Predicate string
	// Active is how many are held, and AverageTTL the mean of the TTLs that they were
	// taken with. A lease that was lost, or ended by Close, counts until its Release.
	Active     int
	AverageTTL time.Duration
	// Acquisitions and Failures count calls by their end. Contended is how many of the
	// failures found another holder.
	Acquisitions, Failures, Contended int64
	// Over is the time in which they were counted.
	Over time.Duration

	ttls time.Duration
}

// PerSecond are the mean rates of acquisitions and failures in the time in which they were
// counted.
func (s Stat) PerSecond() (acquisitions, failures float64) {
	if s.Over <= 0 {
		return 0, 0
	}
	return float64(s.Acquisitions) / s.Over.Seconds(), float64(s.Failures) / s.Over.Seconds()
}

// Stats returns the figures of the locks of this manager by subject and predicate, sorted. A
// lease that is nested in another is not counted.
func (m *Manager) Stats() []Stat {
	m.metrics.mu.Lock()
	defer m.metrics.mu.Unlock()
	all := make([]Stat, 0, len(m.metrics.stats))
	bySubject := func(a, b kind) int {
		return cmp.Or(strings.Compare(a.subject, b.subject), strings.Compare(a.predicate, b.predicate))
	}
	for _, k := range slices.SortedFunc(maps.Keys(m.metrics.stats), bySubject) {
		s := *m.metrics.stats[k]
		s.Over = time.Since(m.metrics.since)
		if s.Active > 0 {
			s.AverageTTL = s.ttls / time.Duration(s.Active)
		}
		all = append(all, s)
	}
	return all
}

// StatsBySubject are those of [Manager.Stats] by subject alone, whatever is done. They have no
// predicate.
func (m *Manager) StatsBySubject() []Stat {
	var all []Stat
	for _, s := range m.Stats() {
		last := len(all) - 1
		if last < 0 || all[last].Subject != s.Subject {
			all, last = append(all, Stat{Subject: s.Subject, Over: s.Over}), last+1
		}
		all[last].add(s)
	}
	return all
}

func (s *Stat) add(other Stat) {
	s.Active += other.Active
	s.Acquisitions += other.Acquisitions
	s.Failures += other.Failures
	s.Contended += other.Contended
	s.ttls += other.ttls
	if s.Active > 0 {
		s.AverageTTL = s.ttls / time.Duration(s.Active)
	}
}

// kind is what the figures are kept by.
type kind struct{ subject, predicate string }
