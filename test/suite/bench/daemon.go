package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/testbed"
)

// newBed builds the program in a folder of its own, which remove removes.
func newBed(ctx context.Context) (bed *testbed.Testbed, remove func(), err error) {
	folder, err := os.MkdirTemp("", "observerd-bench-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { _ = os.RemoveAll(folder) }
	bed = &testbed.Testbed{Options: testbed.Options{Folder: folder}}
	if bed.Binary, err = testbed.Binary(ctx, "", folder); err != nil {
		remove()
		return nil, nil, err
	}
	return bed, remove, nil
}

// startNodes starts nodes with one configuration. stop stops those that were started.
func startNodes(ctx context.Context, bed *testbed.Testbed, c daemon.Config, n int) (nodes []*daemon.Process, stop func() error, err error) {
	stop = func() (err error) {
		for _, p := range nodes {
			err = errors.Join(err, testbed.Stop(ctx, p))
		}
		return err
	}
	for i := range n {
		c.Node = fmt.Sprint("node-", i+1)
		p, err := bed.Start(ctx, "nodes", c)
		if err != nil {
			return nodes, stop, err
		}
		nodes = append(nodes, p)
	}
	return nodes, stop, nil
}

// live lets a process run for that long.
func live(ctx context.Context, p interface{ Exited() <-chan struct{} }, long time.Duration) error {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.Exited():
		return errors.New("the process has ended")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ticksPerSecond is the unit of times in /proc; it is 100 on every platform
// that Go runs on.
const ticksPerSecond = 100

// cpuOf is what a process has used so far, in its own code and in the kernel.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of a process: %w", err)
	}
	// The second field is the name in parentheses, which may hold anything.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("read the CPU time of a process: the kernel's answer is too short")
	}
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of a process: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}
