package systemd_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestReadyOnlyWhenItPolls begins without a database, gets one, loses it, gets it
// back and ends.
func TestReadyOnlyWhenItPolls(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	place := newPlace(t, server.URL("postgres"))
	stopServer(t, server)
	manager := newManager(t)
	process := place.start(t, built.plain, manager.environment(2*time.Second)...)

	// Waiting is no failure: it is given more time, and the watchdog is fed.
	manager.awaits(t, 0, "EXTEND_TIMEOUT_USEC", 3)
	manager.awaits(t, 0, "WATCHDOG", 3)
	manager.awaitsStatus(t, 0, "Waits for the coordination database", "does not answer")
	manager.never(t, 0, "READY")

	startServer(t, server)
	manager.awaits(t, 0, "READY", 1)
	ready := manager.mark()
	manager.awaitsStatus(t, 0, "Polls 1 observer of 1 type: order")
	eventually(t, func() error { return polled(t, process) })

	// A database that goes away is waited for.
	stopServer(t, server)
	manager.awaitsStatus(t, ready, "Waits for the coordination database")
	away := manager.mark()
	manager.awaits(t, away, "WATCHDOG", 5)
	startServer(t, server)
	manager.awaitsStatus(t, away, "Polls 1 observer")
	manager.never(t, ready, "READY")
	manager.never(t, ready, "STOPPING")

	if err := process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ends(t, process, 0)
	manager.awaits(t, ready, "STOPPING", 1)
	manager.awaitsStatus(t, ready, "Stopping")
	manager.awaitsStatus(t, ready, "Ended as asked")
	extended(t, manager, ready, 8*time.Second)
}

// extended fails the test unless the manager was asked for more time than polls
// may take to finish.
func extended(t *testing.T, m *manager, since int, atLeast time.Duration) {
	t.Helper()
	values := m.assignments(since, "EXTEND_TIMEOUT_USEC")
	if len(values) == 0 {
		t.Fatal("the manager was not asked for more time")
	}
	usec, err := strconv.ParseInt(values[len(values)-1], 10, 64)
	if err != nil || time.Duration(usec)*time.Microsecond <= atLeast {
		t.Errorf("asked for %s µs: %v", values, err)
	}
}

// polled complains until the node has polled with success.
func polled(t *testing.T, process *daemon.Process) error {
	t.Helper()
	if metrics(t, process).Sum("scheduler_observer_polls_total", `outcome="ok"`) == 0 {
		return errors.New("nothing was polled")
	}
	return nil
}

func stopServer(t *testing.T, server *pgtest.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := server.Stop(ctx, pgtest.Fast); err != nil {
		t.Fatal(err)
	}
}

func startServer(t *testing.T, server *pgtest.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := server.Start(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestANodeThatIsSwitchedOffIsReady(t *testing.T) {
	t.Parallel()
	place := newPlace(t, "sqlite:observerd.db")
	place.config.Disabled = true
	place.write(t)
	manager := newManager(t)
	place.start(t, built.plain, manager.environment(time.Minute)...)
	manager.awaits(t, 0, "READY", 1)
	manager.awaitsStatus(t, 0, "Switched off")
}

// TestWatchdogStopsWhenALoopHangs lets the relay hang in the middle of a batch.
func TestWatchdogStopsWhenALoopHangs(t *testing.T) {
	t.Parallel()
	place := newPlace(t, "sqlite:observerd.db")
	manager := newManager(t)
	env := append(manager.environment(2*time.Second), "OBSERVERD_FAILPOINTS=relay.read=sleep:1h")
	process := place.start(t, built.faulty, env...)
	manager.awaits(t, 0, "READY", 1)
	manager.awaits(t, 0, "WATCHDOG", 3)

	manager.awaitsStatus(t, 0, "Hangs: relay file")
	hangs := manager.mark()
	if n := process.Log.Count("A loop hangs", `"loops":["relay file"]`); n != 1 {
		t.Errorf("the log names the loop %d times", n)
	}
	if n := process.Log.Count("Stack of a goroutine", "internal/relay.(*", "failpoint.Hit(…)"); n != 1 {
		t.Errorf("the log has %d stacks of the goroutine that hangs", n)
	}
	// The rest of the node goes on, for several times of what the watchdog allows.
	before := turns(t, process)
	eventually(t, func() error {
		if now := turns(t, process); now < before+6 {
			return fmt.Errorf("%v turns since it hangs", now-before)
		}
		return nil
	})
	manager.never(t, hangs, "WATCHDOG")
	manager.never(t, hangs, "READY")

	// The manager's signal ends it, and it shows once more where it was.
	if err := process.Signal(syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	ends(t, process, 2)
	if n := process.Log.Count("SIGABRT: abort"); n != 1 {
		t.Error("the end by the watchdog shows no stacks")
	}
}

func turns(t *testing.T, process *daemon.Process) float64 {
	t.Helper()
	return metrics(t, process).Sum("scheduler_observer_cycle_duration_seconds_count")
}

func TestTheStatusSaysWhyItCannotStart(t *testing.T) {
	t.Parallel()
	place := newPlace(t, "sqlite:observerd.db")
	place.writeText(t, "database: {url: \"postgres://app:hunter2@db/observerd\"}\nobservers: 7\nunheard-of: {}\n")
	manager := newManager(t)
	ends(t, place.start(t, built.plain, manager.environment(time.Minute)...), 78)
	manager.awaitsStatus(t, 0, "exit code 78", "config.yaml:2:", "more in the log", "fix it, then start again")
	manager.never(t, 0, "READY")
	if told := strings.Join(manager.told(), "\n"); strings.Contains(told, "hunter2") {
		t.Errorf("a secret was told:\n%s", told)
	}
}

func TestAManagerThatIsNotThereStopsNothing(t *testing.T) {
	t.Parallel()
	place := newPlace(t, "sqlite:observerd.db")
	process := place.start(t, built.plain, "NOTIFY_SOCKET="+place.folder+"/nobody")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := process.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return polled(t, process) })
	if code, err := process.Stop(ctx); code != 0 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	if n := process.Log.Count("cannot be notified"); n != 1 {
		t.Errorf("the log says %d times that nobody listens", n)
	}
}
