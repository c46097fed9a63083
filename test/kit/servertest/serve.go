package servertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Prepare runs a program to its end that makes what a server needs. What it
// says begins the folder's log, and the end of that is part of an error. The
// context of cmd bounds it.
func (w Workdir) Prepare(cmd *exec.Cmd) error {
	p, err := w.launch(cmd, os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	<-p.Exited() // The command's context ends it in time.
	if !p.State().Success() {
		return fmt.Errorf("%v\n%s", p.State(), w.LogTail())
	}
	return nil
}

// Serve starts a server and returns when it answers pings, each of which has
// some seconds. What the server says goes to the folder's log, and the end of
// that is part of an error. ctx bounds the start alone; the server, which
// outlives it, must not be a command of ctx. One that does not answer in time
// is sent the signal.
func (w Workdir) Serve(ctx context.Context, cmd *exec.Cmd, ping func(context.Context) error, abort syscall.Signal) (*Process, error) {
	p, err := w.launch(cmd, os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	if err := p.ready(ctx, ping); err != nil {
		_ = p.End(ctx, abort) // The first error is the one to report.
		return nil, fmt.Errorf("%w\n%s", err, w.LogTail())
	}
	return p, nil
}

// launch starts a program that writes to the folder's log.
func (w Workdir) launch(cmd *exec.Cmd, mode int) (*Process, error) {
	logFile, err := os.OpenFile(w.Log(), os.O_WRONLY|mode, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the server's log: %w", err)
	}
	defer logFile.Close() // The program has it by then.
	cmd.Stdout, cmd.Stderr = logFile, logFile
	return Launch(cmd)
}

// ready waits until a client gets an answer, or the server has given up.
func (p *Process) ready(ctx context.Context, ping func(context.Context) error) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := answered(ctx, ping)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-p.Exited():
			return fmt.Errorf("it ended: %v", p.State())
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

func answered(ctx context.Context, ping func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return ping(ctx)
}

// ReadPid returns the process id in the first line of a server's file, and 0
// where there is none.
func ReadPid(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
