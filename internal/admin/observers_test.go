package admin

import (
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/status"
)

// TestManyObserversAreDescribed has so many observers that work for each pair of them would
// outlast the status.
func TestManyObserversAreDescribed(t *testing.T) {
	t.Parallel()
	const many = 3000
	cfg, r := new(config.Config), Report{At: time.Now(), Nodes: []status.Node{{Name: "a", Types: []string{"order"}}}}
	cfg.Scheduler.Types = map[string]config.Settings{"order": {}}
	settings := cfg.Scheduler.Types["order"]
	settings.Enabled, settings.FixedDelay = true, 30*time.Second
	cfg.Scheduler.Types["order"] = settings
	for i := range many {
		id := fmt.Sprintf("orders-%04d", i)
		r.Observers = append(r.Observers, status.Observer{ID: id, State: status.StateBackoff})
		if i > 0 {
			cfg.Observers = append(cfg.Observers, config.Observer{ID: id, Type: "order", Enabled: true})
		}
	}
	cfg.Observers = append(cfg.Observers, config.Observer{ID: "stock", Type: "order", Enabled: true})
	began := time.Now()
	describe(cfg, &r)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("%d observers took %s", many, took)
	}
	for i, want := range map[int]string{0: status.StateRemoved, 1: status.StateBackoff, many: status.StateActive} {
		if o := r.Observers[i]; o.State != want || o.NextPollAt.IsZero() != (want == status.StateRemoved) {
			t.Errorf("%s is %s, polled next at %s", o.ID, o.State, o.NextPollAt)
		}
	}
}
