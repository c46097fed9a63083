// Command torture runs clusters of real processes under faults, and judges what
// they did:
//
//	torture [run] [-seed N] [-minutes N] [-nodes N]   a run, and its report
//	torture check DIR...                              judges runs again
//	torture mutants                                   wants each missing safety step to be noticed
//	torture balance [-write FILE]                     how evenly nodes share types
//	torture takeover [-write FILE]                    how long a node's work stands still
//
// Run it by make, which builds what it needs. Each run leaves a folder in
// var/torture, from which it can be judged again and, with the seed and the
// settings in it, repeated.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // a violation, a run that proves nothing, or a harness that failed
	exitUsage  = 64
)

// command does one thing. Its error says what was wrong.
type command func(ctx context.Context, args []string, stdout, stderr io.Writer) error

func commands() map[string]command {
	return map[string]command{
		"run":      torment,
		"check":    checkAgain,
		"mutants":  hunt,
		"balance":  measureBalance,
		"takeover": measureTakeover,
	}
}

func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	name := "run"
	if len(args) > 0 && len(args[0]) > 0 && args[0][0] != '-' {
		name, args = args[0], args[1:]
	}
	do, ok := commands()[name]
	if !ok {
		fmt.Fprintf(stderr, "torture: there is no command %q\n", name)
		return exitUsage
	}
	err := do(ctx, args, stdout, stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, new(usageError)):
		fmt.Fprintln(stderr, "torture:", err)
		return exitUsage
	}
	fmt.Fprintln(stderr, "torture:", err)
	return exitFailed
}

// usageError is a command line that cannot be understood.
type usageError struct{ error }
