package daemon_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/admin/sample"
	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

// patience is how long a test waits for what must happen.
const patience = time.Minute

func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "observerd")
	if err := daemon.Build(t.Context(), daemon.BuildOptions{Out: binary, Version: "under-test"}); err != nil {
		t.Fatal(err)
	}
	return binary
}

// configured makes a folder with the configuration of a node that polls the
// sample warehouse.
func configured(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	warehouse, err := sample.Open(t.Context(), filepath.Join(folder, "warehouse.db"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := warehouse.Close(); err != nil {
		t.Fatal(err)
	}
	c := daemon.Config{
		Node: "a", Database: "sqlite:observerd.db",
		Sources:   map[string]string{"warehouse": "sqlite:warehouse.db"},
		Observers: []string{`{id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at, overlap: 1m}`},
		Files:     map[string]string{"file": filepath.Join(folder, "events.jsonl")},
	}
	if err := c.Write(folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestANodeFromOutside(t *testing.T) {
	t.Parallel()
	binary, folder := build(t), configured(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p, err := daemon.Start(ctx, daemon.Options{Binary: binary, Name: "a", Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := p.Metrics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Gauges[`observerd_build_info{version="under-test"}`]; n != 1 {
		t.Errorf("build info %v, want 1", n)
	}
	for m.Sum("scheduler_observer_polls_total", `type="order"`, `outcome="ok"`) == 0 {
		if m, err = p.Metrics(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if !p.Running() || p.Log.Count(`"msg":"Starting node"`) != 1 {
		t.Errorf("running %t, log:\n%s", p.Running(), p.Log)
	}
	if code, err := p.Stop(ctx); err != nil || code != 0 || p.Running() {
		t.Errorf("exit code %d: %v", code, err)
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal to a process that has ended: %v", err)
	}
}

func TestAProcessEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := daemon.Start(ctx, daemon.Options{Binary: "/bin/sleep", Args: []string{"3600"}, Name: "sleeper", Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-p.Exited():
	case <-time.After(patience):
		t.Fatal("it lives on")
	}
	p.Kill() // A second end is nothing.
	if code := p.ExitCode(); code != -1 {
		t.Errorf("exit code %d, want -1", code)
	}
}

// whenTold is an output that is called when something is written there.
type whenTold func()

// Write implements [io.Writer].
func (w whenTold) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}

// TestTheLogHasAllThatWasWrittenBefore looks into the log of a process that has
// just said something elsewhere.
func TestTheLogHasAllThatWasWrittenBefore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	said := make(chan struct{})
	p, err := daemon.Start(ctx, daemon.Options{
		Binary: "/bin/sh", Args: []string{"-c", "echo written >&2; echo said; exec sleep 3600"}, Name: "a", Folder: t.TempDir(),
		Stdout: whenTold(func() { close(said) }),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	select {
	case <-said:
	case <-ctx.Done():
		t.Fatal("it says nothing")
	}
	if n := p.Log.Count("written"); n != 1 {
		t.Errorf("the log has %d lines, want 1", n)
	}
}

func TestWhatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	folder := t.TempDir()
	if _, err := daemon.Start(ctx, daemon.Options{Binary: "/no/such/binary", Name: "a", Folder: folder}); err == nil {
		t.Error("what is not there has started")
	}
	o := daemon.Options{Binary: "/bin/sh", Args: []string{"-c", "echo for this reason >&2; exit 3"}, Name: "b", Folder: folder}
	if err := daemon.Run(ctx, o); err == nil || !strings.Contains(err.Error(), "for this reason") {
		t.Errorf("a command that failed: %v", err)
	}
	p, err := daemon.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Ready(ctx); err == nil || !strings.Contains(err.Error(), "for this reason") {
		t.Errorf("a node that ended: %v", err)
	}
	if n := p.Log.Count("for this reason"); n != 1 {
		t.Errorf("the log of the second has %d lines, want its own", n)
	}
}
