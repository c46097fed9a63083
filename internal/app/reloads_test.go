package app

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestWhatAReloadSays reads the metrics after a reload that took effect, and after one
// that was refused.
func TestWhatAReloadSays(t *testing.T) {
	t.Parallel()
	reloads, registry := NewReloads(), prometheus.NewRegistry()
	reloads.register(registry)
	expect := func(success, code, loaded float64) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			want := map[string]float64{
				"observerd_config_last_reload_success": success, "observerd_config_last_reload_exit_code": code,
				"observerd_config_last_reload_timestamp_seconds": loaded,
			}[family.GetName()]
			if got := family.GetMetric()[0].GetGauge().GetValue(); got != want {
				t.Errorf("%s is %v, want %v", family.GetName(), got, want)
			}
		}
	}
	reloads.Set(0, time.Unix(100, 0))
	expect(1, 0, 100)
	reloads.Set(78, time.Unix(100, 0))
	expect(0, 78, 100)
	reloads.Set(0, time.Unix(200, 500_000_000))
	expect(1, 0, 200.5)
}
