package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/test/kit/servertest"
)

// postmasterLines reads the file in which a server describes itself: its
// process id in the first line, its shared memory in the seventh.
func postmasterLines(data string) []string {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// family returns the process ids of the children of pid.
func family(pid int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // The pattern is well formed.
	var children []int
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // It ended while we looked.
		}
		// The name in parentheses may hold blanks; state and parent follow it.
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err == nil {
			children = append(children, child)
		}
	}
	return children
}

// isLogger reports whether a child is the one that writes the server's log.
func isLogger(pid int) bool {
	title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.HasPrefix(string(title), "postgres: logger")
}

// vanished waits until none of the processes runs; one that has ended and was
// not collected by its new parent counts as gone.
func vanished(ctx context.Context, pids []int) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for _, pid := range pids {
		for executing(pid) {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return fmt.Errorf("wait for the end of process %d: %w", pid, context.Cause(ctx))
			}
		}
	}
	return nil
}

func executing(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil && !servertest.Zombie(pid)
}
