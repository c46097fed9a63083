package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// asCommand makes the test binary the command.
const asCommand = "PGTEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// stopped is a command that has tests with servers of their own, and is stopped so that
// it cannot clean up: it is another pgtest, in a session of its own.
const stopped = `setsid "$0" sh -c 'kill -STOP $PPID; echo $PPID; sleep 600' & wait`

// TestInterruptedCommandLeavesNothing interrupts a command, and ends the shell that has
// started it as make does. Neither processes nor folders of servers are left.
func TestInterruptedCommandLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, shell := range map[string]string{
		"a signal":             `exec "$@"`,
		"the end of its shell": `"$@"; exit`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := servertest.OpenDir(t)
			cmd := exec.CommandContext(t.Context(), "sh", "-c", shell, "sh", os.Args[0], "sh", "-c", stopped, os.Args[0])
			cmd.Env = append(os.Environ(), asCommand+"=1", "TMPDIR="+folder)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line := make([]byte, 16)
			n, err := stdout.Read(line)
			stranded, numberErr := strconv.Atoi(strings.TrimSpace(string(line[:n])))
			if err != nil || numberErr != nil {
				t.Fatal(err, numberErr)
			}
			t.Cleanup(func() { _ = syscall.Kill(-stranded, syscall.SIGKILL) })
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // It was interrupted.
			waittest.Eventually(t, time.Minute, func() error {
				entries, err := os.ReadDir(folder)
				if len(entries) > 0 || servertest.Alive(stranded) {
					return fmt.Errorf("%v; the stopped command lives: %v", entries, servertest.Alive(stranded))
				}
				return err
			})
		})
	}
}
