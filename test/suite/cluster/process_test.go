package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	process "github.com/observerd/observerd/test/kit/daemon"
)

// daemon is a node that runs as a process of its own.
type daemon struct{ *process.Process }

// run starts the program in a folder.
func run(t *testing.T, name, folder string, attributes syscall.SysProcAttr, args ...string) *daemon {
	t.Helper()
	p, err := process.Start(context.WithoutCancel(t.Context()), process.Options{
		Binary: os.Getenv(envBinary), Name: name, Folder: folder, Args: args, Attributes: attributes,
		LogFile: filepath.Join(t.TempDir(), "log"),
	})
	must(t, err)
	return kept(t, p)
}

// kept kills a process when the test ends. The tests' own end kills it too.
func kept(t *testing.T, p *process.Process) *daemon {
	t.Helper()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			const most = 40_000
			t.Logf("log of %s:\n%s", p.Name(), p.Log.Tail(most))
		}
	})
	return &daemon{p}
}

// signal sends a signal to a process that runs.
func (d *daemon) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := d.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// ends waits for the end of the process and returns its exit code.
func (d *daemon) ends(t *testing.T, limit time.Duration) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	code, err := d.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// stops asks the process to end, and wants that to go well.
func (d *daemon) stops(t *testing.T) {
	t.Helper()
	d.signal(t, syscall.SIGTERM)
	if code := d.ends(t, patience); code != 0 {
		t.Errorf("%s: exit code %d", d.Name(), code)
	}
}

// says waits for a record of its log that holds all of these texts.
func (d *daemon) says(t *testing.T, parts ...string) {
	t.Helper()
	eventually(t, func() error {
		if d.Log.Count(parts...) == 0 {
			return fmt.Errorf("%s has not said %q", d.Name(), parts)
		}
		return nil
	})
}
