package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/status"
)

// TestABrokenConnectionIsNoBrokenPipe tells a database that has hung up from a
// reader of stdout that has.
func TestABrokenConnectionIsNoBrokenPipe(t *testing.T) {
	t.Parallel()
	broken := os.NewSyscallError("write", syscall.EPIPE)
	for name, test := range map[string]struct {
		err    error
		code   int
		silent bool
	}{
		"stdout":     {fmt.Errorf("print: %w", &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}), exitPipe, true},
		"a database": {fmt.Errorf("stop: %w", &net.OpError{Op: "write", Net: "tcp", Err: broken}), exitUnavailable, false},
	} {
		var stderr bytes.Buffer
		explain(&stderr, &cobra.Command{}, test.err)
		if code := exitCode(test.err); code != test.code || (stderr.Len() == 0) != test.silent {
			t.Errorf("%s: exit code %d, said %q", name, code, strings.TrimSpace(stderr.String()))
		}
	}
}

// TestExitCodeOfAVerdict is what 'observerd status --exit-code' ends with.
func TestExitCodeOfAVerdict(t *testing.T) {
	t.Parallel()
	down := fmt.Errorf("dial: %w", os.ErrDeadlineExceeded)
	for level, want := range map[status.Level]int{status.LevelOK: exitOK, status.LevelDegraded: 3, status.LevelFailing: 4} {
		code := exitOK
		if err := verdictError(status.Verdict{Level: level}, nil); err != nil {
			code = exitCode(err)
		}
		if unknown := exitCode(verdictError(status.Verdict{Level: level}, down)); code != want || unknown != 1 {
			t.Errorf("%s: exit codes %d and %d, want %d and 1", level, code, unknown, want)
		}
	}
}
