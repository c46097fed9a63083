package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startTimeout bounds how long a daemon may take until it is ready.
const startTimeout = time.Minute

// daemon is a running observerd.
type daemon struct {
	cmd    *exec.Cmd
	listen string
	log    bytes.Buffer
	// ended is closed when the process has ended, err says how.
	ended chan struct{}
	err   error
}

func startDaemon(ctx context.Context, binary, config, listen string) (*daemon, error) {
	d := &daemon{listen: listen, ended: make(chan struct{})}
	d.cmd = exec.CommandContext(ctx, binary, "run", "--config", config)
	d.cmd.Stderr = &d.log
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		d.err = d.cmd.Wait()
		close(d.ended)
	}()
	return d, nil
}

// ready waits until the daemon says that it is.
func (d *daemon) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("the daemon is not ready in time"))
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for !d.asked(ctx) {
		select {
		case <-ticker.C:
		case <-d.ended:
			return errors.New("the daemon has ended")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (d *daemon) asked(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.listen+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// live lets the daemon run for that long.
func (d *daemon) live(ctx context.Context, long time.Duration) error {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-d.ended:
		return errors.New("the daemon has ended")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ticksPerSecond is the unit of times in /proc; it is 100 on every platform
// that Go runs on.
const ticksPerSecond = 100

// cpu is what the daemon has used so far, in its own code and in the kernel.
func (d *daemon) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of the daemon: %w", err)
	}
	// The second field is the name in parentheses, which may hold anything.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("read the CPU time of the daemon: the kernel's answer is too short")
	}
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of the daemon: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// stop ends the daemon as systemd does. When something had gone wrong before,
// the end of the daemon's log says more.
func (d *daemon) stop(before error) error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.ended:
	case <-time.After(startTimeout):
		_ = d.cmd.Process.Kill()
		<-d.ended
	}
	if err := errors.Join(before, d.err); err != nil {
		text := d.log.String()
		return fmt.Errorf("%w; its log ends with:\n%s", err, text[max(0, len(text)-2000):])
	}
	return nil
}
