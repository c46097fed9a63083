// Command observerd polls databases that other teams own and turns each new or
// changed row into exactly one durable event. See 'observerd help'.
package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// version is set by the linker: -X main.version=…
var version string

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// With this, a write to a pipe without a reader fails instead of killing
	// the process with its leases in hand.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	interrupts.signals, interrupts.cancel = signals, cancel
	go func() {
		for s := range signals {
			if interrupts.take(s) {
				os.Exit(signalError{s}.code())
			}
		}
	}()
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// interrupts are those of this process.
var interrupts switchboard

// switchboard decides what SIGINT and SIGTERM do: the first one cancels the context and the
// second one ends the process, until they are passed on to a command.
type switchboard struct {
	signals chan os.Signal
	cancel  context.CancelCauseFunc

	mu       sync.Mutex
	stopping bool
	passTo   chan<- os.Signal
	// scratch is a folder that is removed before the process ends at once; empty: none.
	scratch string
}

// take reports whether the process is to end at once.
func (b *switchboard) take(s os.Signal) (end bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.passTo != nil:
		select {
		case b.passTo <- s:
		default: // The command has as many before it.
		}
	case b.stopping:
		_ = os.RemoveAll(b.scratch) // The node still writes, and ends either way.
		return true
	default:
		b.stopping = true
		b.cancel(signalError{s})
	}
	return false
}

// widen lets other signals that would end the process do the same. What this process was told
// to ignore, as by nohup, stays ignored.
func (b *switchboard) widen(signals ...os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(b.signals, s)
		}
	}
}

// pass passes signals on from now on. It reports false when one has cancelled the
// context before.
func (b *switchboard) pass(to chan<- os.Signal) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopping {
		b.passTo = to
	}
	return !b.stopping
}

// removes has a second signal remove a folder.
func (b *switchboard) removes(folder string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scratch = folder
}

// signalError is why a context ended that a signal has cancelled.
type signalError struct{ signal os.Signal }

func (e signalError) Error() string { return e.signal.String() }

// code is the exit code that shells give a process that a signal has ended.
func (e signalError) code() int {
	if number, ok := e.signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitFailure
}
