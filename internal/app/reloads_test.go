package app

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestReloadMetricsAreOfOneMoment reads them while reloads end, by turns well and
// not: a reader that waits for the end of one would else take the outcome of another.
func TestReloadMetricsAreOfOneMoment(t *testing.T) {
	t.Parallel()
	const refused, often = 78, 2000
	reloads, registry := NewReloads(), prometheus.NewRegistry()
	registry.MustRegister(reloads.collectors()...)
	gathered := make(chan struct{})
	var reloading sync.WaitGroup
	reloading.Go(func() {
		for {
			reloads.Begin()
			reloads.Done(1)
			reloads.Begin()
			reloads.Refused(refused)
			select {
			case <-gathered:
				return
			default:
			}
		}
	})
	for range often {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		values := make(map[string]float64)
		for _, family := range families {
			values[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue()
		}
		number, changed := values["observerd_config_last_reload_number"], values["observerd_config_last_reload_changed_keys"]
		code, success := values["observerd_config_last_reload_exit_code"], values["observerd_config_last_reload_success"]
		if good := int(number)%2 == 1 || number == 0; good != (success == 1) || good != (code == 0) || (changed == 1) != (good && number > 0) {
			t.Errorf("number %v, success %v, exit code %v, %v keys changed", number, success, code, changed)
			break
		}
	}
	close(gathered)
	reloading.Wait()
}

// TestWhatAReloadSays goes through reloads that take effect, that are refused and
// that are taken back.
func TestWhatAReloadSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, whatAReloadSays)
}

func whatAReloadSays(t *testing.T) {
	r := NewReloads()
	start := r.Loaded()
	expect := func(what string, number, code, changed int, at time.Time) {
		t.Helper()
		if _, got := r.state(); got != (outcome{number, code, changed, at}) {
			t.Errorf("%s: %+v, want number %d, code %d, %d keys, at %v", what, got, number, code, changed, at)
		}
	}
	expect("at the start", 0, 0, 0, start)
	r.Begin()
	expect("while it goes on", 0, 0, 0, start)
	time.Sleep(time.Second)
	r.Done(3)
	loaded := r.Loaded()
	expect("it took effect", 1, 0, 3, loaded)
	r.Begin()
	r.Refused(78)
	expect("it was refused", 2, 78, 0, loaded)
	r.Begin()
	time.Sleep(time.Second)
	r.Done(0)
	again := r.Loaded()
	expect("nothing has changed", 3, 0, 0, again)
	if begun, _ := r.state(); begun != 3 || !start.Before(loaded) || !loaded.Before(again) {
		t.Errorf("%d begun; loaded at %v, %v and %v", begun, start, loaded, again)
	}
	r.Undo(start)
	expect("it is taken back", 2, 0, 0, start)
	r.Refused(78)
	expect("it was taken back", 3, 78, 0, start)
}
