package app_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/app"
)

func doing(node *app.App, want string) func() error {
	return func() error {
		if got := node.Doing(); !strings.HasPrefix(got, want) {
			return fmt.Errorf("it says %q, want %q", got, want)
		}
		return nil
	}
}

func polling(node *app.App) bool {
	select {
	case <-node.Polling():
		return true
	default:
		return false
	}
}

func TestDoingOfANodeThatPolls(t *testing.T) {
	t.Parallel()
	node, err := app.New(t.Context(), setup(t, "").options())
	if err != nil {
		t.Fatal(err)
	}
	if polling(node) {
		t.Error("it polls before its start")
	}
	node.Start()
	eventually(t, doing(node, "Polls 3 observers of 3 types: inventory, order, wes"))
	if !polling(node) {
		t.Error("it says that it polls, and does not")
	}
	stop(t, node)
	eventually(t, doing(node, "Stopping"))
}

func TestDoingOfANodeThatWaits(t *testing.T) {
	t.Parallel()
	p := setup(t, "postgres://secret-user:hunter2@127.0.0.1:1/observerd?sslmode=disable")
	node := p.start(t)
	eventually(t, doing(node, "Waits for the coordination database, which does not answer"))
	if said := node.Doing(); strings.Contains(said, "hunter2") || strings.Contains(said, "secret-user") || strings.Contains(said, "127.0.0.1") {
		t.Errorf("everybody may read %q", said)
	}
	if polling(node) {
		t.Error("it polls without a database")
	}
}

func TestDoingOfANodeThatWaitsForAMigration(t *testing.T) {
	t.Parallel()
	p := setup(t, "")
	p.config.Database.AutoMigrate = false
	node := p.start(t)
	eventually(t, doing(node, "Waits for the coordination database: 'observerd migrate up'"))
	if polling(node) {
		t.Error("it polls without its tables")
	}
}

func TestDoingOfANodeThatIsSwitchedOff(t *testing.T) {
	t.Parallel()
	p := setup(t, "")
	p.config.Scheduler.Enabled = false
	node := p.start(t)
	eventually(t, func() error {
		if !polling(node) {
			return errors.New("it has not begun")
		}
		return nil
	})
	eventually(t, doing(node, "Switched off"))
}

// TestReadinessOfANodeWhoseHeartbeatIsRefused has a database that answers and cannot be written,
// as with a full disk.
func TestReadinessOfANodeWhoseHeartbeatIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p place) {
		node := p.start(t)
		ready(t, node)
		db := p.beside(t)
		refuse, accept := `CREATE TRIGGER no_beat BEFORE UPDATE ON obs_node BEGIN SELECT RAISE(FAIL, 'full'); END`, `DROP TRIGGER no_beat`
		if !strings.HasPrefix(p.config.Database.URL.Reveal(), "sqlite:") {
			refuse, accept = `ALTER TABLE obs_node ADD CONSTRAINT no_beat CHECK (false) NOT VALID`, `ALTER TABLE obs_node DROP CONSTRAINT no_beat`
		}
		run(t, db, refuse)
		says(t, node, "/readyz", "the coordination database has not taken the last heartbeat of this node; the log says why")
		if said := node.Doing(); !strings.Contains(said, "which does not answer or refuses writes") {
			t.Error(said)
		}
		run(t, db, accept)
		ready(t, node)
	})
}
