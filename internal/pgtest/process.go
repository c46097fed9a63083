package pgtest

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// process is a running child and the goroutine that waits for it.
type process struct {
	cmd *exec.Cmd
	// exited is closed once the child has ended and was waited for.
	exited chan struct{}
}

// launch starts cmd on an operating system thread that lives as long as the
// child: the kernel's parent-death signal follows the thread, not the process,
// and Go ends idle threads whenever it likes.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, exited: make(chan struct{})}
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

// running reports whether the child has not ended yet.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// wait returns when the child has ended or ctx is done.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of process %d: %w", p.cmd.Process.Pid, context.Cause(ctx))
	}
}

// end sends a signal and waits. A child that outlives ctx is killed, so that
// nothing is left running.
func (p *process) end(ctx context.Context, signal syscall.Signal) error {
	if !p.running() {
		return nil
	}
	if err := p.cmd.Process.Signal(signal); err != nil && p.running() {
		return fmt.Errorf("signal process %d: %w", p.cmd.Process.Pid, err)
	}
	err := p.wait(ctx)
	if err != nil {
		_ = p.cmd.Process.Kill() // The child is being given up; only its end is left to wait for.
		<-p.exited
	}
	return err
}
