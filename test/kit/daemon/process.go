package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/observerd/observerd/test/kit/servertest"
)

// Options of a process.
type Options struct {
	// Binary is the program; required. See [Build].
	Binary string
	// Name stands in errors, and names the log; required.
	Name string
	// Folder is the existing working directory, where "run" finds its
	// config.yaml, and the process's HOME and TMPDIR; required.
	Folder string
	// Args of the program; nil means "run".
	Args []string
	// Env is added to HOME and TMPDIR, which is all that the process has.
	Env []string
	// Stdout receives what the process writes there; nil drops it.
	Stdout io.Writer
	// LogFile receives what it writes to stderr; empty means NAME.log in Folder.
	// A file that exists is continued.
	LogFile string
	// Attributes are those of the process, such as the user that it runs as.
	Attributes syscall.SysProcAttr
}

// Process is a running program, or one that has ended. Its methods may be used
// by several goroutines.
type Process struct {
	// Log is what it wrote to stderr.
	Log *Log

	name   string
	cmd    *exec.Cmd
	exited chan struct{}
}

// Start starts a process, which is killed when ctx ends.
func Start(ctx context.Context, o Options) (*Process, error) {
	if o.Args == nil {
		o.Args = []string{"run"}
	}
	if o.LogFile == "" {
		o.LogFile = filepath.Join(o.Folder, o.Name+".log")
	}
	file, err := os.OpenFile(o.LogFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644) //nolint:gosec // People read it.
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", o.Name, err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the log of %s: %w", o.Name, err), file.Close())
	}
	log, stderr, err := newDrain(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the log of %s: %w", o.Name, err), file.Close())
	}
	p := &Process{Log: &Log{path: o.LogFile, from: info.Size(), drain: log}, name: o.Name, exited: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, o.Binary, o.Args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = o.Folder, o.Stdout, stderr
	p.cmd.Env = append([]string{"HOME=" + o.Folder, "TMPDIR=" + o.Folder}, o.Env...)
	// A group of its own keeps Ctrl-C from reaching it before its owner.
	o.Attributes.Setpgid = true
	servertest.DieWithParent(&o.Attributes, syscall.SIGKILL)
	p.cmd.SysProcAttr = &o.Attributes
	err = p.launch(stderr)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	return p, nil
}

// launch starts the process. Only it keeps its end of the pipe.
func (p *Process) launch(stderr io.Closer) error {
	var draining sync.WaitGroup
	draining.Go(p.Log.drain.run)
	process, err := servertest.Launch(p.cmd)
	_ = stderr.Close()
	ended := func() {
		defer close(p.exited)
		draining.Wait()
		_ = p.Log.drain.log.Close()
	}
	if err != nil {
		ended()
		return err
	}
	go func() {
		<-process.Exited()
		ended()
	}()
	return nil
}

// Name is that of the options.
func (p *Process) Name() string { return p.name }

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// ExitCode is that of a process that has ended, -1 for one that was killed. It
// waits for the end.
func (p *Process) ExitCode() int {
	<-p.exited
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal. One that has ended is an error.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("send %s to %s: %w", s, p.name, err)
	}
	return nil
}

// Kill ends the process at once and waits for that. It may be called twice.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // It has ended, or it ends.
	<-p.exited
}

// Wait waits for the end of the process and returns its exit code.
func (p *Process) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.exited:
		return p.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for the end of %s: %w", p.name, context.Cause(ctx))
	}
}

// Stop asks the process to end, as a service manager does, and returns its exit
// code. It is killed when ctx ends first, which is an error.
func (p *Process) Stop(ctx context.Context) (int, error) {
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, err
	}
	code, err := p.Wait(ctx)
	if err != nil {
		p.Kill()
	}
	return code, err
}

// Run runs a one-shot command to its end. An exit code other than 0 is an
// error, with the end of what it wrote to stderr.
func Run(ctx context.Context, o Options) error {
	p, err := Start(ctx, o)
	if err != nil {
		return err
	}
	code := p.ExitCode()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", o.Name, context.Cause(ctx))
	}
	if code != 0 {
		return fmt.Errorf("%s: exit code %d:\n%s", o.Name, code, p.Log.Tail(2000))
	}
	return nil
}
