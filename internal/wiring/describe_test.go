package wiring_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/wiring"
)

// TestObserversAreDescribed has one that the configuration has not, one that was polled, and
// one that was not.
func TestObserversAreDescribed(t *testing.T) {
	t.Parallel()
	const many = 3
	cfg, r := new(config.Config), status.Report{At: time.Now(), Nodes: []status.Node{{Name: "a", Types: []string{"order"}}}}
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
	wiring.Describe(cfg, &r)
	for i, want := range map[int]string{0: status.StateRemoved, 1: status.StateBackoff, many: status.StateActive} {
		if o := r.Observers[i]; o.State != want || o.NextPollAt.IsZero() != (want == status.StateRemoved) {
			t.Errorf("%s is %s, polled next at %s", o.ID, o.State, o.NextPollAt)
		}
	}
}
