package locks_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/locks"
)

func TestMetricsOfAcquisitions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m, p := open(t, locks.Options{Registerer: reg, MetricsPrefix: "gateway_lock"})
		first := acquire(t, m, t.Context(), fileset)
		nested := acquire(t, m, first.Context(), fileset) // It is no acquisition.
		if _, err := m.Acquire(t.Context(), fileset, locks.Retry(locks.Fixed(time.Second, 2))); !errors.Is(err, locks.ErrHeld) {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := m.Acquire(ctx, fileset); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		var refused *locks.PolicyError
		if _, err := m.Acquire(t.Context(), in(audit, locks.Shared)); !errors.As(err, &refused) {
			t.Fatal(err)
		}
		wrong := audit
		wrong.Subject = "no-subject"
		if _, err := m.Acquire(t.Context(), wrong); err == nil {
			t.Fatal("a subject that is not known")
		}
		stopped := errors.New("the service stops")
		ctx, stop := context.WithCancelCause(t.Context())
		stop(stopped)
		if _, err := m.Acquire(ctx, fileset); !errors.Is(err, stopped) {
			t.Fatal(err)
		}
		synctest.Wait() // The places in line are given back.
		// The last two are the end of an attempt, as of a database that does not answer.
		for _, down := range []error{errors.New("down"), context.DeadlineExceeded, context.Canceled} {
			p.Fail(down)
			if _, err := m.Acquire(t.Context(), fileset); !errors.Is(err, down) {
				t.Fatal(err)
			}
		}
		p.Fail(nil)
		p.ExpireTerm(first.Term())
		recovered := acquire(t, m, t.Context(), fileset)
		release(t, recovered)
		_, _ = first.Release(t.Context()), nested.Release(t.Context())

		const of = `{mode="exclusive",predicate="processing",provider="memory",subject="fileset"}`
		const reason = `{mode="exclusive",predicate="processing",provider="memory",reason="`
		want := `
# HELP gateway_lock_acquisition_attempts_total Calls that wanted a lock, however often each tried.
# TYPE gateway_lock_acquisition_attempts_total counter
gateway_lock_acquisition_attempts_total` + of + ` 8
gateway_lock_acquisition_attempts_total{mode="shared",predicate="processing",provider="memory",subject="audit"} 1
# HELP gateway_lock_acquisition_successes_total Calls that got the lock.
# TYPE gateway_lock_acquisition_successes_total counter
gateway_lock_acquisition_successes_total` + of + ` 2
# HELP gateway_lock_acquisition_failures_total Calls that did not get the lock: another had it (contention), a policy refused it, the caller's time was over (timeout), or the provider failed (api_error).
# TYPE gateway_lock_acquisition_failures_total counter
gateway_lock_acquisition_failures_total` + reason + `contention",subject="fileset"} 1
gateway_lock_acquisition_failures_total` + reason + `timeout",subject="fileset"} 2
gateway_lock_acquisition_failures_total` + reason + `api_error",subject="fileset"} 3
gateway_lock_acquisition_failures_total{mode="shared",predicate="processing",provider="memory",reason="policy",subject="audit"} 1
# HELP gateway_lock_retries_total Attempts after the first of a call.
# TYPE gateway_lock_retries_total counter
gateway_lock_retries_total` + of + ` 2
gateway_lock_retries_total{mode="shared",predicate="processing",provider="memory",subject="audit"} 0
# HELP gateway_lock_releases_total Locks that were released.
# TYPE gateway_lock_releases_total counter
gateway_lock_releases_total` + of + ` 2
# HELP gateway_lock_stale_recovered_total Locks that were taken from a holder which did not release them.
# TYPE gateway_lock_stale_recovered_total counter
gateway_lock_stale_recovered_total` + of + ` 1
# HELP gateway_lock_active_count Locks that this process holds.
# TYPE gateway_lock_active_count gauge
gateway_lock_active_count` + of + ` 0
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "gateway_lock_acquisition_attempts_total", "gateway_lock_acquisition_successes_total",
			"gateway_lock_acquisition_failures_total", "gateway_lock_retries_total", "gateway_lock_releases_total", "gateway_lock_stale_recovered_total", "gateway_lock_active_count"); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"gateway_lock_acquisition_duration_seconds", "gateway_lock_hold_duration_seconds"} {
			if n, err := testutil.GatherAndCount(reg, name); err != nil || n == 0 {
				t.Errorf("%d series of %s, %v", n, name, err)
			}
		}
	})
}

func TestMetricsOfLeasesThatAreHeldTooLong(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	bubble(t, locks.Options{Registerer: reg}, func(t *testing.T, m *locks.Manager) {
		for _, held := range []time.Duration{time.Minute, 2 * time.Hour} {
			l, err := m.Acquire(t.Context(), audit, locks.MaxHold(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(held)
			_ = l.Release(t.Context())
		}
		synctest.Wait()
		want := `
# HELP observerd_locks_overstayed_total Leases that ended because of max-hold; their holders may still be working.
# TYPE observerd_locks_overstayed_total counter
observerd_locks_overstayed_total{mode="exclusive",predicate="processing",provider="memory",subject="audit"} 1
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "observerd_locks_overstayed_total"); err != nil {
			t.Error(err)
		}
	})
}

func TestStats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _ := open(t, locks.Options{})
		long := below(fileset, "page", "7")
		long.TTL = 90 * time.Second
		first, second := acquire(t, m, t.Context(), below(fileset, "page", "8")), acquire(t, m, t.Context(), long)
		if !isHeld(t, m, long) {
			t.Fatal("not held")
		}
		release(t, acquire(t, m, t.Context(), audit))
		time.Sleep(time.Minute)
		stats := m.Stats()
		if len(stats) != 2 || stats[0].Subject != "audit" || stats[0].Active != 0 || stats[0].Acquisitions != 1 {
			t.Fatalf("%+v", stats)
		}
		if s := stats[1]; s.Subject != "page" || s.Predicate != "processing" || s.Active != 2 || s.AverageTTL != time.Minute || s.Acquisitions != 2 ||
			s.Failures != 1 || s.Contended != 1 || s.Over != time.Minute {
			t.Errorf("%+v", s)
		}
		if acquisitions, failures := stats[1].PerSecond(); acquisitions != 2./60 || failures != 1./60 {
			t.Errorf("%v acquisitions and %v failures a second", acquisitions, failures)
		}
		reading := in(below(fileset, "page", "9"), locks.Shared)
		reading.Predicate, reading.TTL = "reading", 3*time.Minute
		third := acquire(t, m, t.Context(), reading)
		by := m.StatsBySubject()
		if len(by) != 2 || by[0].Subject != "audit" || by[0].Acquisitions != 1 || by[0].Active != 0 {
			t.Fatalf("%+v", by)
		}
		if s := by[1]; s.Subject != "page" || s.Predicate != "" || s.Active != 3 || s.AverageTTL != 100*time.Second || s.Acquisitions != 3 ||
			s.Failures != 1 || s.Contended != 1 || s.Over != time.Minute {
			t.Errorf("%+v", s)
		}
		for _, l := range []*locks.Lease{first, second, third} {
			release(t, l)
		}
	})
}

func TestMetricsThatCannotBe(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	_, _ = open(t, locks.Options{Registerer: reg})
	_, _ = open(t, locks.Options{Registerer: reg}) // It shares the metrics.
	other := prometheus.NewRegistry()
	other.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "observerd_locks_releases_total", Help: "Of another."}))
	for says, o := range map[string]locks.Options{
		"MetricsPrefix":  {MetricsPrefix: "gateway-lock"},
		"another metric": {Registerer: other},
	} {
		o.Provider = &locktest.Memory{}
		if _, err := locks.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
