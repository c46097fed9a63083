// Command pgtest runs a command beside throw-away servers of PostgreSQL and
// MariaDB:
//
//	pgtest [-memory] go test ./...
//
// With -memory they keep their files in memory, where there is room: a commit
// then costs no wait for the disk. Do not measure anything that way.
//
// The command finds the URL of the account that may do everything in PGTEST_URL
// and MARIATEST_URL. When it ends, however it ends, what it has started ends too, the
// servers are removed, and pgtest exits with its code. SIGINT, SIGTERM, SIGHUP and, on
// Linux, the end of the process that started pgtest interrupt all of that.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/observerd/observerd/test/kit/servertest"
)

// Exit codes of our own; every other one is the command's.
const (
	exitFailed      = 125
	exitUsage       = 64
	exitInterrupted = 130
)

// patience is how long an interrupted command may take to end.
const patience = 10 * time.Second

func main() {
	// The child asks the kernel to be told when the thread that started it ends.
	runtime.LockOSThread()
	adopt()
	code := run(os.Args[1:], os.Stderr)
	endOrphans()
	sweep()
	os.Exit(code)
}

func run(args []string, stderr io.Writer) int {
	// We outlive the command, to remove the servers.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	folder := ""
	if len(args) > 0 && args[0] == "-memory" {
		folder, args = servertest.Memory(), args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(stderr, "usage: pgtest [-memory] COMMAND [ARGUMENT...]")
		return exitUsage
	}
	servers, err := start(ctx, folder)
	code := 0
	if err == nil {
		code, err = execute(ctx, servers, args)
	}
	err = errors.Join(err, servers.close())
	if err != nil {
		fmt.Fprintln(stderr, "pgtest:", err)
		code = max(code, exitFailed)
	}
	if ctx.Err() != nil {
		return exitInterrupted
	}
	return code
}

// execute runs the command and returns its exit code.
func execute(ctx context.Context, servers servers, args []string) (int, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), servers.environ()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	servertest.DieWithParent(cmd.SysProcAttr, syscall.SIGTERM) // Its database ends at the same moment.
	cmd.Cancel = func() error {
		interrupt(cmd.Process.Pid)
		return nil
	}
	cmd.WaitDelay = patience
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	return 0, err
}
