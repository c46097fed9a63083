// Command observerd polls databases that other teams own and turns each new or
// changed row into exactly one durable event. See 'observerd help'.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker: -X main.version=…
var version string

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// With this, a write to a pipe without a reader fails instead of killing
	// the process with its leases in hand.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		for stopping := false; ; {
			switch s := (signalError{<-signals}); {
			case passedOn.Load():
			case stopping:
				os.Exit(s.code())
			default:
				stopping = true
				cancel(s)
			}
		}
	}()
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// signalError is why a context ended that a signal has cancelled.
type signalError struct{ signal os.Signal }

// Error names the signal.
func (e signalError) Error() string { return e.signal.String() }

// code is the exit code that shells give a process that a signal has ended.
func (e signalError) code() int {
	if number, ok := e.signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitFailure
}
