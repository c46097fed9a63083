// Package lockexec runs a command under a lock, and ends it when the lock is lost.
package lockexec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/observerd/observerd/locks"
)

// DefaultGrace is the time that a command has to end by itself after the loss.
const DefaultGrace = 10 * time.Second

// waitDelay is how long output is read on that is no file, after the command has ended:
// what it has left behind may keep it open.
const waitDelay = time.Second

// Options describe the command.
type Options struct {
	// Command is the name of the program and its arguments, and Environ its environment,
	// to which the names of the lock are added. Command is required.
	Command []string
	Environ []string
	// Stdin, Stdout and Stderr are those of the command. Files are handed over as they
	// are.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Signals are passed on to the command and to all that it has started.
	Signals <-chan os.Signal
	// Terminal says that a person types what the command reads. It stays in the process
	// group of the terminal then, whose signals it gets from there: SIGINT, SIGQUIT and
	// SIGTSTP are not passed on, and what the command has started is not ended with it.
	Terminal bool
	// Grace is the time between TERM and KILL after the lock was lost. 0 means
	// [DefaultGrace].
	Grace time.Duration
}

// Find returns an error for a command that cannot be run, before a lock is taken for it.
// It is [exec.ErrNotFound] or [fs.ErrPermission].
func Find(name string) error {
	_, err := exec.LookPath(name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("command %q cannot be executed; check its rights: %w", name, fs.ErrPermission)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("command %q is not there; write its path, or check PATH: %w", name, exec.ErrNotFound)
	}
	return fmt.Errorf("command %q: %w", name, err)
}

// Run runs the command while l is held, and returns its exit code, as a shell does: 128
// and the signal's number when a signal has ended it. The lease is not released.
//
// When the lease is lost, the command gets SIGTERM, and SIGKILL after the grace; the error
// is [locks.ErrLost] then. Where the kernel can, the command is killed when this process
// dies: nobody renews its lock from then on.
func Run(l *locks.Lease, o Options) (code int, err error) {
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	// The command would die with the thread that has started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := &run{Options: o, ended: make(chan struct{})}
	if err := r.start(l); err != nil {
		return 0, err
	}
	lost := r.watch(l.Context())
	code = exitCode(r.cmd.ProcessState)
	if lost {
		return code, locks.ErrLost
	}
	return code, nil
}

// run is a command that runs.
type run struct {
	Options
	cmd   *exec.Cmd
	ended chan struct{} // closed when the command has ended
}

func (r *run) start(l *locks.Lease) error {
	r.cmd = exec.Command(r.Command[0], r.Command[1:]...) //nolint:noctx // It ends by signals; see watch.
	r.cmd.Env = append(slices.Clone(r.Environ),
		"LOCK_NAME="+l.Descriptor().String(), "LOCK_TERM="+l.Term(), "LOCK_FENCING_TOKEN="+strconv.FormatInt(l.Fence(), 10))
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = r.Stdin, r.Stdout, r.Stderr
	r.cmd.WaitDelay = waitDelay
	r.cmd.SysProcAttr = attributes(!r.Terminal)
	if err := r.cmd.Start(); err != nil {
		return fmt.Errorf("start the command: %w", err)
	}
	go func() {
		_ = r.cmd.Wait() // Its state says how it ended.
		close(r.ended)
	}()
	return nil
}

// watch returns when the command has ended, and reports whether the lease was lost before.
func (r *run) watch(held context.Context) (lost bool) {
	var killed <-chan time.Time
	over := held.Done()
	for {
		select {
		case <-r.ended:
			if lost = lost || held.Err() != nil; lost {
				r.endGroup()
			}
			return lost
		case s := <-r.Signals:
			r.passOn(s)
		case <-over:
			lost, over = true, nil
			r.signal(syscall.SIGTERM)
			timer := time.NewTimer(r.Grace)
			defer timer.Stop()
			killed = timer.C
		case <-killed:
			r.signal(syscall.SIGKILL)
		}
	}
}

// endGroup ends what the command has started and left behind when the lock was lost.
func (r *run) endGroup() {
	if !r.Terminal {
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// signal reaches all that the command has started. That it has ended by now is no mistake.
func (r *run) signal(s syscall.Signal) {
	if r.Terminal {
		_ = r.cmd.Process.Signal(s)
		return
	}
	_ = syscall.Kill(-r.cmd.Process.Pid, s)
}

// passOn passes on what this process got, unless the terminal has sent it to both.
func (r *run) passOn(s os.Signal) {
	number, ok := s.(syscall.Signal)
	if !ok || r.Terminal && fromTerminal(number) {
		return
	}
	r.signal(number)
}

// fromTerminal reports whether the terminal itself sends the signal to its process group.
func fromTerminal(s syscall.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGQUIT || s == syscall.SIGTSTP
}

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
