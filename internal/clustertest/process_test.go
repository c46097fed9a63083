package clustertest_test

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// daemon is a node that runs as a process of its own.
type daemon struct {
	name   string
	cmd    *exec.Cmd
	log    *logbook
	exited chan struct{}
}

// run starts the program in a folder. It is killed when the test ends, or the
// tests do, whichever way.
func run(t *testing.T, name, folder string, attributes syscall.SysProcAttr, args ...string) *daemon {
	t.Helper()
	d := &daemon{name: name, log: &logbook{}, exited: make(chan struct{})}
	d.cmd = exec.Command(os.Getenv(envBinary), args...)
	d.cmd.Dir, d.cmd.Stdout, d.cmd.Stderr = folder, io.Discard, d.log
	attributes.Setpgid = true
	dieWithParent(&attributes)
	d.cmd.SysProcAttr = &attributes
	d.cmd.Env = []string{"HOME=" + folder, "TMPDIR=" + folder}
	if err := d.launch(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, tail(d.log.String()))
		}
	})
	return d
}

// launch starts the process on a thread that lives as long as it does: the
// kernel's signal at the parent's death follows the thread.
func (d *daemon) launch() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(d.exited)
		err := d.cmd.Start()
		started <- err
		if err == nil {
			_ = d.cmd.Wait() // How it ended stands in cmd.ProcessState.
		}
	}()
	return <-started
}

// signal sends a signal to a process that runs.
func (d *daemon) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		t.Fatalf("signal %s: %v", d.name, err)
	}
}

// kill ends the process at once and waits for that. It may be called twice.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	<-d.exited
}

// ends waits for the end of the process and returns its exit code.
func (d *daemon) ends(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-d.exited:
	case <-time.After(limit):
		t.Fatalf("%s has not ended within %s", d.name, limit)
	}
	return d.cmd.ProcessState.ExitCode()
}
