// Package lockexec runs a command under a lock, and ends it when the lock is lost.
package lockexec

import (
	"cmp"
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
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
	// Signals are passed on to the command and to all that it has started. SIGTSTP stops
	// this process too, which could not renew the lock beside a command that runs.
	Signals <-chan os.Signal
	// Terminal is what [AtTerminal] says. The command stays in the process group of the
	// terminal then, whose signals it gets from there: SIGINT and SIGQUIT are not passed
	// on, and what the command has started is not ended with it.
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
	case strings.Contains(name, "/") && errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("command not found: %q; correct its path: %w", name, fs.ErrNotExist)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("command not found: %q; use its path, or check PATH: %w", name, exec.ErrNotFound)
	}
	return fmt.Errorf("command %q: %w", name, err)
}

// Run runs the command while l is held, and returns its exit code, as a shell does: 128
// and the signal's number when a signal has ended it. The lease is not released.
//
// When the context of the lease ends, the command gets SIGTERM, and SIGKILL after the
// grace; the error is the cause then, [locks.ErrLost] for a lease that was lost. Where the kernel can, the command is killed when this process
// dies: nobody renews its lock from then on.
func Run(l *locks.Lease, o Options) (code int, err error) {
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	// The command would die with the thread that has started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := &run{Options: o, ended: make(chan struct{})}
	if err := r.start(l); err != nil {
		return 0, err
	}
	r.watch(l.Context())
	return exitCode(r.cmd.ProcessState), context.Cause(l.Context())
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

// watch returns when the command has ended. It ends the command when held ends.
func (r *run) watch(held context.Context) {
	var killed <-chan time.Time
	over := held.Done()
	for {
		select {
		case <-r.ended:
			if held.Err() != nil && !r.Terminal {
				r.signal(syscall.SIGKILL) // To what the command has started and left behind.
			}
			return
		case s := <-r.Signals:
			r.passOn(s)
		case <-over:
			over = nil
			r.signal(syscall.SIGTERM)
			timer := time.NewTimer(r.Grace)
			defer timer.Stop()
			killed = timer.C
		case <-killed:
			r.signal(syscall.SIGKILL)
		}
	}
}

// signal reaches all that the command has started. That it has ended by now is no mistake.
func (r *run) signal(s syscall.Signal) {
	if r.Terminal {
		_ = r.cmd.Process.Signal(s)
		return
	}
	_ = syscall.Kill(-r.cmd.Process.Pid, s)
	switch s {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM:
		// In the background, a read from the terminal has stopped it.
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGCONT)
	}
}

// passOn passes on what this process got, unless the terminal has sent it to both.
func (r *run) passOn(s os.Signal) {
	number, ok := s.(syscall.Signal)
	if !ok || r.Terminal && (number == syscall.SIGINT || number == syscall.SIGQUIT) {
		return
	}
	r.signal(number)
	if number == syscall.SIGTSTP {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
}

// AtTerminal reports whether this process is in the foreground of a terminal, which sends
// its signals to the whole process group.
func AtTerminal() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer func() { _ = terminal.Close() }()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
