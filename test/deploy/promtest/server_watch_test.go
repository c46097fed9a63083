//go:build nightly

package promtest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/deploy/promtest"
)

const (
	// patience is how long a test waits for what must happen soon, on a machine
	// that has much else to do.
	patience = 2 * time.Minute
	// lookEvery is the distance of looks while something is waited for.
	lookEvery = 250 * time.Millisecond
	// envScale is the factor that lengths of time in the rules are multiplied by:
	// 1 runs them as they ship, for an hour and a half (go test -timeout 4h).
	envScale = "OBSERVERD_PROMETHEUS_SCALE"
	// shippedInterval is what the rules are written for, and what the interval of
	// the types is made of in the same scale.
	shippedInterval = 30 * time.Second
)

// usualScale makes 30 minutes a minute.
const usualScale = 1.0 / 30

func prometheusScale(t *testing.T) promtest.Scale {
	t.Helper()
	factor := usualScale
	if text := os.Getenv(envScale); text != "" {
		var err error
		if factor, err = strconv.ParseFloat(text, 64); err != nil || factor < usualScale || factor > 1 {
			t.Fatalf("%s is %q; it is a number from %g to 1", envScale, text, usualScale)
		}
	}
	return promtest.Scale{Factor: factor, Least: 5 * time.Second}
}

// TestPrometheusSeesWhatHappens lets a real Prometheus watch a cluster that
// works, loses a node, gets it back, stops and works again.
func TestPrometheusSeesWhatHappens(t *testing.T) {
	s := prometheusScale(t)
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) * s.Factor) }
	cluster := startWatched(t, max(scaled(shippedInterval), time.Second))
	w := &watch{prometheus: startPrometheus(t, s, cluster.nodes[0].address, cluster.nodes[1].address)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of prometheus:\n%s", w.process.Log.Tail(4000))
		}
	})

	t.Log("both nodes work: nothing fires")
	w.during(t, scaled(40*time.Minute), nothingFires)
	w.dashboards(t, scaled(30*time.Minute))

	t.Log("one node is killed: a warning, and nothing critical")
	cluster.nodes[1].process.Kill()
	w.until(t, patience+scaled(time.Hour), pending("ObserverdSingleNodeAcquiring"), nothingCritical)
	w.until(t, patience+scaled(time.Hour), firing("ObserverdSingleNodeAcquiring"), nothingCritical)
	w.only(t, "ObserverdSingleNodeAcquiring")

	t.Log("it is back: the warning ends")
	cluster.again(t, cluster.nodes[1])
	w.until(t, patience+scaled(time.Hour), quiet("ObserverdSingleNodeAcquiring"), nothingCritical)

	t.Log("both are stopped: nobody polls")
	cluster.stop(t, cluster.nodes[0])
	cluster.stop(t, cluster.nodes[1])
	w.until(t, patience+scaled(time.Hour), firing("ObserverdNoLockAcquired"))

	t.Log("both are back: all is quiet again")
	cluster.again(t, cluster.nodes[:]...)
	w.until(t, patience+scaled(2*time.Hour), quiet("ObserverdNoLockAcquired", "ObserverdTypeNotPolled", "ObserverdTypeNotSucceeding",
		"ObserverdLeaseWithoutProgress", "ObserverdSingleNodeAcquiring"))
	w.dashboards(t, scaled(30*time.Minute))
	if err := w.failures(t.Context()); err != nil {
		t.Error(err)
	}
}

// watch looks at the alerts of a Prometheus.
type watch struct{ *prometheus }

// view is a complaint about what is pending and firing now; nil for none.
type view func(now map[string]alert) error

// during holds that a view has no complaint for as long.
func (w *watch) during(t *testing.T, d time.Duration, always view) {
	t.Helper()
	w.look(t, d, func(now map[string]alert) bool {
		if err := always(now); err != nil {
			t.Fatal(err)
		}
		return false
	})
}

// until waits until a view has no complaint, and holds that the others have
// none meanwhile.
func (w *watch) until(t *testing.T, limit time.Duration, wanted view, always ...view) {
	t.Helper()
	began, last := time.Now(), errors.New("prometheus does not answer")
	reached := w.look(t, limit, func(now map[string]alert) bool {
		for _, v := range always {
			if err := v(now); err != nil {
				t.Fatal(err)
			}
		}
		last = wanted(now)
		return last == nil
	})
	if !reached {
		t.Fatalf("not within %s: %v", limit, last)
	}
	t.Logf("after %s", time.Since(began).Round(time.Second))
}

// only holds that nothing but one alert fires.
func (w *watch) only(t *testing.T, name string) {
	t.Helper()
	now, err := w.alerts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	delete(now, name)
	if err := nothingFires(now); err != nil {
		t.Error(err)
	}
}

// look looks again until enough is seen, which it reports, or the time is over.
func (w *watch) look(t *testing.T, limit time.Duration, enough func(now map[string]alert) bool) bool {
	t.Helper()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for end := time.After(limit); ; {
		now, err := w.alerts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if enough(now) {
			return true
		}
		select {
		case <-tick.C:
		case <-end:
			return false
		}
	}
}

func nothingFires(now map[string]alert) error {
	for name, a := range now {
		if a.State == "firing" {
			return fmt.Errorf("%s fires: %v", name, a.Labels)
		}
	}
	return nil
}

func nothingCritical(now map[string]alert) error {
	for name, a := range now {
		if a.State == "firing" && a.Labels["severity"] == "critical" {
			return fmt.Errorf("%s fires, and is critical: %v", name, a.Labels)
		}
	}
	return nil
}

func pending(name string) view { return in(name, "pending") }

func firing(name string) view { return in(name, "firing") }

func in(name, state string) view {
	return func(now map[string]alert) error {
		if got := now[name].State; got != state {
			return fmt.Errorf("%s is %q, want %s", name, got, state)
		}
		return nil
	}
}

// quiet wants these neither pending nor firing.
func quiet(names ...string) view {
	return func(now map[string]alert) error {
		for _, name := range names {
			if a, there := now[name]; there {
				return fmt.Errorf("%s is %s: %v", name, a.State, a.Labels)
			}
		}
		return nil
	}
}

// mayBeEmpty are queries without a result in health, by panel: what they show
// has no series before it has happened.
var mayBeEmpty = map[string][]string{
	"":                  {"ALERTS"},
	"What went wrong":   {"observerd_source_failures_total"},
	"Takeovers":         {"observerd_takeovers_total"},
	"The fence at work": {"observerd_lease_renewals_total"},
}

// dashboards asks Prometheus what the dashboards ask it.
func (w *watch) dashboards(t *testing.T, last time.Duration) {
	t.Helper()
	values := promtest.AnyValues()
	values["__rate_interval"], values["__interval"], values["__range"] = "15s", "5s", "1m"
	paths, err := filepath.Glob(filepath.Join(root, "deploy", "grafana", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	met := make(map[string]bool)
	for _, path := range paths {
		d, err := promtest.ReadDashboard(path)
		if err != nil {
			t.Fatal(err)
		}
		all, err := d.Exprs(values)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			met[e.Panel] = true
			result, err := w.query(t.Context(), e, last)
			if err != nil {
				t.Error(err)
				continue
			}
			if !slices.ContainsFunc(result, series.shows) && !canBeEmpty(e) {
				t.Errorf("%s shows nothing: %s", e.Where, e.Text)
			}
		}
	}
	for panel := range mayBeEmpty {
		if !met[panel] {
			t.Errorf("the panel %q, which may be empty, is not there", panel)
		}
	}
}

func canBeEmpty(e promtest.DashboardExpr) bool {
	return slices.ContainsFunc(mayBeEmpty[e.Panel], func(metric string) bool { return strings.Contains(e.Text, metric) })
}
