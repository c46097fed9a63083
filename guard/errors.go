package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/observerd/observerd/locks"
)

// What a bus does after an error of [Guard.Do]: it redelivers the event, but for ErrPermanent.
var (
	// ErrLockTimeout reports that another had the key for as long as Options.Wait. Nothing
	// was done.
	ErrLockTimeout = errors.New("another has the key")
	// ErrUnavailable reports that the lock store or the database did not do what the guard
	// needs. Nothing was committed.
	ErrUnavailable = errors.New("the lock store or the database is not available")
	// ErrLost reports that the lease ended before the commit, or that the commit has failed
	// without an answer. Nothing was committed. It is [locks.ErrLost].
	ErrLost = locks.ErrLost
	// ErrUnknown reports that the answer to the commit was lost, and that the inbox could not
	// be read for as long as Options.Lease since. The next attempt finds out.
	ErrUnknown = errors.New("it is not known whether the event was committed")
	// ErrPermanent is for handlers: an event whose error wraps it belongs to the dead
	// letters. Nothing was committed.
	ErrPermanent = errors.New("the event can never be processed")
)

// Errors of a program or a database that must be changed.
var (
	// ErrTxEnded reports a handler that has ended the transaction. What it committed is not
	// guarded.
	ErrTxEnded  = errors.New("the handler has ended the transaction, which is the guard's; leave COMMIT and ROLLBACK out of it")
	errOpenRows = errors.New("the handler has left rows of its transaction open; close them")
	// ErrNoTable reports a database without the inbox. The message has the SQL that makes it.
	ErrNoTable = errors.New("the table obs_inbox is missing")
	// ErrReadOnly reports a database that takes no writes, such as a standby.
	ErrReadOnly = errors.New("the database takes no writes; connect to the primary, or remove default_transaction_read_only")
)

// InputError reports an option, or a key or event id, that cannot be.
type InputError struct {
	// Field is what is wrong, such as Options.Lease or key, and Reason says why, and what to
	// write instead. The value is not repeated.
	Field, Reason string
}

// Error says what is wrong where.
func (e *InputError) Error() string { return "guard: " + e.Field + " " + e.Reason }

// PanicError is the panic of a handler. Its transaction was rolled back.
type PanicError struct {
	// Value is what the handler panicked with, and Stack where.
	Value any
	Stack []byte
}

// Error has the value, and not the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("the handler has panicked: %v", e.Value) }

// lockError says what an error of the lock means for the bus.
func lockError(ctx context.Context, err error) error {
	_, ofPolicy := errors.AsType[*locks.PolicyError](err)
	_, nested := errors.AsType[*locks.NestedError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, locks.ErrHeld):
		return fmt.Errorf("%w: %w", ErrLockTimeout, err)
	case ofPolicy || nested:
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// dbError says what an error of the guard's own statements means for the bus. ctx is that of
// the transaction. What the server refuses for good, such as a right that is missing, comes as
// it is.
func dbError(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSlow), errors.Is(cause, locks.ErrClosed):
		return fmt.Errorf("%w: %w", ErrUnavailable, cause)
	case cause != nil:
		return cause
	}
	state := stateOf(err)
	switch {
	case state == "42P01":
		return fmt.Errorf("%w; make it in a migration:\n%s", ErrNoTable, SQL())
	case state == "42P10":
		return fmt.Errorf("%w with its primary key; make it in a migration:\n%s", ErrNoTable, SQL())
	case state == "25006":
		return ErrReadOnly
	case state == "55P03":
		return fmt.Errorf("%w: a transaction of its last holder has not ended", ErrLockTimeout)
	case state == "25P02":
		return fmt.Errorf("the handler has passed over an error of its transaction: %w", err)
	case state == "" || slices.Contains([]string{"08", "25", "40", "53", "55", "57", "58", "XX"}, state[:2]):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// stateOf is the SQLSTATE of the server's answer, of pgx or lib/pq; empty without an answer.
func stateOf(err error) string {
	var answer interface{ SQLState() string }
	if errors.As(err, &answer) {
		return answer.SQLState()
	}
	return ""
}

// isUnknown reports whether a commit that failed so may have happened: there was no answer, or
// the server ended the session, which may follow a commit.
func isUnknown(err error) bool {
	state := stateOf(err)
	return state == "" || slices.Contains([]string{"08", "57", "58", "XX"}, state[:2]) || state == "25P03" || state == "25P04"
}

// kinds are the labels of errors; the first one that an error is counts.
var kinds = []struct {
	label string
	is    error
}{
	{"permanent", ErrPermanent}, {"tx_ended", ErrTxEnded}, {"unknown", ErrUnknown}, {"lost", ErrLost}, {"lock_timeout", ErrLockTimeout},
	{"no_table", ErrNoTable}, {"read_only", ErrReadOnly}, {"unavailable", ErrUnavailable},
	{"canceled", context.Canceled}, {"canceled", context.DeadlineExceeded},
}

func kindOf(err error) string {
	for _, kind := range kinds {
		if errors.Is(err, kind.is) {
			return kind.label
		}
	}
	return "handler"
}
