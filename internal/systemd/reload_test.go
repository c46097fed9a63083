package systemd_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // The driver "sqlite".

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
)

// TestReload reloads a node several times: well, with a broken file, twice in a
// row, and with what cannot be built.
func TestReload(t *testing.T) {
	t.Parallel()
	place, manager := newPlace(t, "sqlite:observerd.db"), newManager(t)
	process := place.startOnAPort(t, built.plain, manager.environment(time.Minute)...)
	manager.awaits(t, 0, "READY", 1)
	began := reloadedAt(t, process, 1)

	t.Log("a change")
	place.config.Interval = 2 * time.Second
	place.write(t)
	mark := manager.mark()
	hangUp(t, process)
	manager.awaits(t, mark, "READY", 1)
	oneTime(t, manager.assignments(mark, "MONOTONIC_USEC"))
	if n := process.Log.Count(`"changed":[`, `"scheduler.observer.fixed-delay"`); n != 1 {
		t.Errorf("the log names what has changed %d times", n)
	}
	again := reloadedAt(t, process, 1)
	if again <= began {
		t.Errorf("reloaded at %f, started at %f", again, began)
	}

	t.Log("a broken file")
	place.writeText(t, "observers: 7\nunheard-of: {}\n")
	mark = manager.mark()
	hangUp(t, process)
	manager.awaits(t, mark, "READY", 1)
	manager.awaitsStatus(t, mark, "Polls 1 observer", "reload refused: config.yaml:1:", "1 more in the log")
	for _, mistake := range []string{"config.yaml:1:", "config.yaml:2:"} {
		if n := process.Log.Count("Reload refused", mistake); n != 1 {
			t.Errorf("the log names %s %d times", mistake, n)
		}
	}
	if at := reloadedAt(t, process, 0); at != again {
		t.Errorf("the configuration that is at work was loaded at %f, not at %f", again, at)
	}
	before := turns(t, process)
	eventually(t, func() error {
		if now := turns(t, process); now < before+2 {
			return fmt.Errorf("%v turns since the refusal", now-before)
		}
		return nil
	})

	t.Log("two in a row")
	place.write(t)
	mark = manager.mark()
	hangUp(t, process)
	manager.awaits(t, mark, "RELOADING", 1)
	hangUp(t, process)
	manager.awaits(t, mark, "RELOADING", 2)
	eventually(t, func() error { // The first of the two may be replaced before it polls.
		if got := manager.states(mark); got[len(got)-1] != "READY" {
			return fmt.Errorf("told %q", got)
		}
		return nil
	})
	if n := process.Log.Count("Configuration reloaded"); n != 3 {
		t.Errorf("%d reloads took effect, want 3", n)
	}
	reloadedAt(t, process, 1)
	if last := manager.assignments(mark, "STATUS"); strings.Contains(last[len(last)-1], "refused") {
		t.Errorf("the status still is %q", last[len(last)-1])
	}

	t.Log("an address in use")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	place.listen = taken.Addr().String()
	place.write(t)
	mark = manager.mark()
	hangUp(t, process)
	manager.awaits(t, mark, "READY", 1)
	manager.awaitsStatus(t, mark, "Polls 1 observer", "reload refused", "http.listen")
	reloadedAt(t, process, 0)

	if err := process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ends(t, process, 0)
	manager.awaits(t, mark, "STOPPING", 1)
}

// startOnAPort starts a node on a port that stays the same over reloads.
func (p *place) startOnAPort(t *testing.T, program func() (string, error), env ...string) (process *daemon.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := servertest.StartOnFreePort(ctx, func(port int) error {
		p.listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		p.write(t)
		process = p.start(t, program, env...)
		return process.Ready(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return process
}

func hangUp(t *testing.T, process *daemon.Process) {
	t.Helper()
	if err := process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// reloadedAt checks what the metrics say of the last reload, and returns when the
// configuration was loaded.
func reloadedAt(t *testing.T, process *daemon.Process, success float64) float64 {
	t.Helper()
	m := metrics(t, process)
	if got := m.Gauges["observerd_config_last_reload_success"]; got != success {
		t.Errorf("success of the last reload: %v, want %v", got, success)
	}
	at := m.Gauges["observerd_config_last_reload_timestamp_seconds"]
	if now := float64(time.Now().UnixMilli()) / 1000; at <= 0 || at > now+60 {
		t.Errorf("reloaded at %f, now it is %f", at, now)
	}
	return at
}

// oneTime checks that there is one time of a reload, by the clock that the manager
// reads, and not in the future.
func oneTime(t *testing.T, values []string) {
	t.Helper()
	if len(values) != 1 {
		t.Fatalf("times %q, want one", values)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	usec, err := strconv.ParseInt(values[0], 10, 64)
	if age := now.Nano()/1000 - usec; err != nil || age < 0 || age > patience.Microseconds() {
		t.Errorf("the reload began %d µs ago: %v", age, err)
	}
}

// states are the changes of state since the mark, in order.
func (m *manager) states(since int) (states []string) {
	for _, message := range m.told()[since:] {
		for line := range strings.SplitSeq(message, "\n") {
			if name, one := strings.CutSuffix(line, "=1"); one && name != "WATCHDOG" {
				states = append(states, name)
			}
		}
	}
	return states
}

// TestStopDuringAReload asks the process to end while the former node still
// stops, because its database is busy.
func TestStopDuringAReload(t *testing.T) {
	t.Parallel()
	place, manager := newPlace(t, "sqlite:observerd.db"), newManager(t)
	process := place.start(t, built.plain, manager.environment(time.Second)...)
	manager.awaits(t, 0, "READY", 1)
	eventually(t, func() error { return polled(t, process) })
	release := hold(t, filepath.Join(place.folder, "observerd.db"))
	mark := manager.mark()
	hangUp(t, process)
	manager.awaits(t, mark, "RELOADING", 1)
	if err := process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	manager.awaits(t, manager.mark(), "WATCHDOG", 2)
	release()
	ends(t, process, 0)
	if got := manager.states(mark); !slices.Equal(got, []string{"RELOADING", "STOPPING"}) {
		t.Errorf("told %q", got)
	}
	if n := process.Log.Count(`"msg":"Starting node"`); n != 1 {
		t.Errorf("%d nodes were begun, want one", n)
	}
}

// hold keeps the write lock of an SQLite file.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_busy_timeout=60000&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

// TestReloadGoesBackFromWhatCannotWork reloads to a database that a newer binary
// has migrated, which only the new node can find out.
func TestReloadGoesBackFromWhatCannotWork(t *testing.T) {
	t.Parallel()
	place, manager := newPlace(t, "sqlite:observerd.db"), newManager(t)
	process := place.startOnAPort(t, built.plain, manager.environment(time.Minute)...)
	manager.awaits(t, 0, "READY", 1)
	place.config.Database = "sqlite:newer.db"
	place.write(t)
	newer(t, place)
	mark := manager.mark()
	hangUp(t, process)
	manager.awaits(t, mark, "READY", 1)
	manager.awaitsStatus(t, mark, "Polls 1 observer", "reload refused", "newer")
	reloadedAt(t, process, 0)
	eventually(t, func() error { return polled(t, process) })
	if !process.Running() {
		t.Error("the process has ended")
	}
}

// newer makes the coordination database of the configuration, and lets it look
// migrated by a newer binary.
func newer(t *testing.T, p *place) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	binary, err := built.plain()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Run(ctx, daemon.Options{Binary: binary, Name: "migrate", Folder: p.folder, Args: []string{"migrate", "up"}}); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(p.folder, "newer.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, `INSERT INTO obs_migration (version_id, is_applied) VALUES (9999, 1)`); err != nil {
		t.Fatal(err)
	}
}

// TestReloadGoesBackToWhatHasWorked reloads to a database that does not answer, and
// from there to one that a newer binary has migrated: the way back leads to the
// configuration with which a node has worked, not to the one that waits.
func TestReloadGoesBackToWhatHasWorked(t *testing.T) {
	t.Parallel()
	place, manager := newPlace(t, "sqlite:observerd.db"), newManager(t)
	process := place.startOnAPort(t, built.plain, manager.environment(time.Minute)...)
	manager.awaits(t, 0, "READY", 1)
	loaded := reloadedAt(t, process, 1)
	place.config.Database = "sqlite:newer.db"
	place.write(t)
	newer(t, place)

	place.config.Database = "postgres://observerd@127.0.0.1:1/observerd?sslmode=disable"
	place.write(t)
	mark := manager.mark()
	hangUp(t, process)
	manager.awaits(t, mark, "READY", 1) // Or no manager would pass the next one on.
	manager.awaitsStatus(t, mark, "Waits for the coordination database")

	place.config.Database = "sqlite:newer.db"
	place.write(t)
	hangUp(t, process)
	manager.awaitsStatus(t, mark, "Polls 1 observer", "reload refused", "newer")
	eventually(t, func() error { return polled(t, process) })
	if at := reloadedAt(t, process, 0); at != loaded {
		t.Errorf("the configuration that is at work was loaded at %f, not at %f", loaded, at)
	}
}

// TestStopDuringAReloadThatCannotRead asks the process to end while a reload reads
// a pipe into which nobody writes.
func TestStopDuringAReloadThatCannotRead(t *testing.T) {
	t.Parallel()
	place, manager := newPlace(t, "sqlite:observerd.db"), newManager(t)
	process := place.start(t, built.plain, manager.environment(time.Second)...)
	manager.awaits(t, 0, "READY", 1)
	pipe := filepath.Join(place.folder, "config.yaml")
	if err := errors.Join(os.Remove(pipe), unix.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	mark := manager.mark()
	hangUp(t, process)
	manager.awaits(t, mark, "RELOADING", 1)
	before := turns(t, process)
	eventually(t, func() error { // The node goes on meanwhile.
		if now := turns(t, process); now < before+2 {
			return fmt.Errorf("%v turns since the reload began", now-before)
		}
		return nil
	})
	if err := process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ends(t, process, 0)
	manager.awaits(t, mark, "STOPPING", 1)
}

// TestAReloadHidesNoLoopThatHangs reloads a node whose relay hangs and holds the
// file of the sink: the next node cannot deliver, and does not look well.
func TestAReloadHidesNoLoopThatHangs(t *testing.T) {
	t.Parallel()
	place, manager := newPlace(t, "sqlite:observerd.db"), newManager(t)
	place.config.Shutdown = time.Second
	env := append(manager.environment(2*time.Second), "OBSERVERD_FAILPOINTS=relay.read=sleep:1h")
	process := place.startOnAPort(t, built.faulty, env...)
	manager.awaits(t, 0, "READY", 1)
	eventually(t, func() error {
		if process.Log.Count("failpoint", "relay.read", "action=sleep") == 0 {
			return errors.New("the relay does not hang yet")
		}
		return nil
	})
	mark := manager.mark()
	hangUp(t, process)
	manager.awaitsStatus(t, mark, "Hangs: former node")
	hangs := manager.mark()
	before := turns(t, process)
	eventually(t, func() error {
		if now := turns(t, process); now < before+6 {
			return fmt.Errorf("%v turns of the new node", now-before)
		}
		return nil
	})
	manager.never(t, hangs, "WATCHDOG")
}

// TestReloadWhileTheDatabaseIsDown reloads a node whose database has gone: the next
// one waits for it and polls when it is back. The reload is over long before.
func TestReloadWhileTheDatabaseIsDown(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	place, manager := newPlace(t, server.URL("postgres")), newManager(t)
	process := place.startOnAPort(t, built.plain, manager.environment(2*time.Second)...)
	manager.awaits(t, 0, "READY", 1)
	eventually(t, func() error { return polled(t, process) })
	stopServer(t, server)
	mark := manager.mark()
	hangUp(t, process)
	manager.awaitsStatus(t, mark, "Waits for the coordination database")
	eventually(t, func() error {
		if process.Log.Count("Configuration reloaded") == 0 {
			return errors.New("not reloaded")
		}
		return nil
	})
	manager.awaits(t, mark, "READY", 1)
	waits := manager.mark()
	manager.awaits(t, waits, "WATCHDOG", 3)
	manager.never(t, waits, "EXTEND_TIMEOUT_USEC")
	manager.never(t, waits, "READY")
	if states := manager.states(mark); !slices.Equal(states, []string{"RELOADING", "READY"}) {
		t.Errorf("told %q", states)
	}
	startServer(t, server)
	manager.awaitsStatus(t, waits, "Polls 1 observer")
	eventually(t, func() error { return polled(t, process) })
	if n := process.Log.Count("did not stop in time", "did not end in time"); n > 0 {
		t.Error("something of the former node is left")
	}
}
