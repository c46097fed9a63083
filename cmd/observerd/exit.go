package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/wiring"
)

// The exit codes. From 64 on they are those of sysexits.h.
const (
	exitOK            = 0
	exitFailure       = 1
	exitUsage         = 2
	exitFindings      = 3
	exitFailing       = 4
	exitUnavailable   = 69
	exitNotAcquired   = 75
	exitLost          = 76
	exitDenied        = 77
	exitConfiguration = 78
	exitNotExecutable = 126
	exitNotFound      = 127
	exitPipe          = 128 + int(syscall.SIGPIPE)
)

// exitCodesTopic is a help topic, not a command: it has nothing to run.
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `Exit codes:

    0  done, or stopped as asked
    1  failed; the message says why
    2  the command line is wrong
    3  'observerd doctor' has found problems; 'observerd status --exit-code': the
       cluster is degraded, with 4 failing, with 1 that could not be told
   69  a database cannot be reached, or has pending migrations; try again later
   75  'observerd exec' did not get the lock: another holds it; 'observerd locks
       steal' did not: who holds it has changed, or shares it with another;
       'observerd locks release': no holder of the lock has that term;
       'observerd observers backfill' was stopped by --timeout, and can go on
   76  'observerd exec' has lost the lock while the command ran, or does not know
       whether it has: its release was not answered
   77  a right is missing: a folder that cannot be written, a file (also one that
       holds a secret) that cannot be read, a port that needs a privilege
   78  the configuration is wrong, or does not suit this host: a port in use, a
       credential that is missing, a password in a file that everybody may read,
       a password that a database refuses ('observerd run' waits for that of the
       coordination database), a file that is no SQLite database; or the schema
       is newer than this binary. Trying again will not help
  126  'observerd exec' cannot execute the command; 127: there is no such command
  130  ended by SIGINT before the work was done; 143 by SIGTERM, 141 because
       stdout has no reader any more

'observerd run' ends with 0 after one SIGINT or SIGTERM. A second one ends it
at once, with 130 or 143; its leases then stand until their TTL is over.`,
	}
}

// usageError is a fault of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// saidError is an error that needs no further word: its text is on the screen.
type saidError struct{ error }

// Unwrap returns the error itself, which decides the exit code.
func (e saidError) Unwrap() error { return e.error }

func exitCode(err error) int {
	signal, stopped := errors.AsType[signalError](err)
	switch coded, ok := errors.AsType[codeError](err); {
	case ok && !brokenPipe(err):
		return coded.code
	case errors.As(err, new(usageError)):
		return exitUsage
	case stopped:
		return signal.code()
	case brokenPipe(err), errors.Is(err, errPipeClosed):
		return exitPipe
	}
	switch wiring.FaultOf(err) {
	case wiring.Misused:
		return exitUsage
	case wiring.Misconfigured:
		return exitConfiguration
	case wiring.Denied:
		return exitDenied
	case wiring.Unavailable:
		return exitUnavailable
	}
	return exitFailure
}

// brokenPipe reports whether stdout has no reader any more. A connection to a
// database breaks with the same error, and is none of this.
func brokenPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) && !errors.As(err, new(*net.OpError))
}

// explain writes what went wrong and what to try next.
func explain(w io.Writer, command *cobra.Command, err error) {
	switch configuration, is := errors.AsType[*config.Error](err); {
	case errors.As(err, new(saidError)), brokenPipe(err):
	case is:
		fmt.Fprintln(w, configuration)
	case errors.As(err, new(usageError)):
		// Cobra breaks the line before its suggestions, and indents them.
		text := strings.Join(strings.Fields(err.Error()), " ")
		fmt.Fprintf(w, "observerd: %s\nSee '%s --help'.\n", text, command.CommandPath())
	default:
		fmt.Fprintf(w, "observerd: %v\n", err)
	}
}

// exitStatus is what the service manager shows of a run that has ended: the first
// line of why, and what is to be done before it runs again.
func exitStatus(err error) string {
	if err == nil {
		return "Ended as asked"
	}
	code := exitCode(err)
	text := fmt.Sprintf("Ended with exit code %d: %s", code, summary(err))
	switch code {
	case exitConfiguration:
		return text + "; fix it, then start again"
	case exitDenied:
		return text + "; give the right, then start again"
	}
	return text
}

// summary is the first line of an error, and how many more there are.
func summary(err error) string {
	lines := strings.Split(err.Error(), "\n")
	if mistakes, ok := errors.AsType[*config.Error](err); ok {
		lines = fn.Each(mistakes.Problems, config.Problem.String)
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return fmt.Sprintf("%s (and %d more in the log)", lines[0], len(lines)-1)
}
