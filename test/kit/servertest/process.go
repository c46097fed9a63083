package servertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// Process is a running child and the goroutine that waits for it.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// Launch starts cmd on an operating system thread that lives as long as the
// child: the kernel's parent-death signal follows the thread, not the process,
// and Go ends idle threads whenever it likes.
func Launch(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // How it ended stands in cmd.ProcessState.
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Exited is closed once the child has ended and was waited for.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// State is how the child has ended; nil before Exited is closed.
func (p *Process) State() *os.ProcessState {
	if p.Running() {
		return nil
	}
	return p.cmd.ProcessState
}

// Pid is the child's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Running reports whether the child has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Wait returns when the child has ended or ctx is done.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of process %d: %w", p.Pid(), context.Cause(ctx))
	}
}

// End sends a signal and waits. A child that outlives ctx is killed, so that
// nothing is left running.
func (p *Process) End(ctx context.Context, signal syscall.Signal) error {
	if !p.Running() {
		return nil
	}
	// One that has ended this very moment is only to be waited for.
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal process %d: %w", p.Pid(), err)
	}
	err := p.Wait(ctx)
	if err != nil {
		_ = p.cmd.Process.Kill() // The child is being given up; only its end is left to wait for.
		<-p.exited
	}
	return err
}

// Alive reports whether a process of anybody's has this id and has not ended.
func Alive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) && !Zombie(pid)
}

// Zombie reports whether the process has ended and only waits to be collected,
// which a container without an init never does.
func Zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(rest, "Z")
}
