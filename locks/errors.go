package locks

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

var (
	// ErrHeld reports that the lock is held by another. It comes as a [*HeldError].
	ErrHeld = lock.ErrHeld
	// ErrLost reports that a lease has ended against the will of its holder. It is the
	// cause of the end of the lease's context.
	ErrLost = lock.ErrLost
	// ErrHeldTooLong is the [ErrLost] of a lease that was held for as long as [MaxHold] or a
	// policy allows.
	ErrHeldTooLong = lock.ErrHeldTooLong
	// ErrRenewed reports that a lock was not stolen, because its holder has renewed the lease
	// since it was seen.
	ErrRenewed = lock.ErrRenewed
	// ErrEnded is the [ErrLost] of a lock that was not stolen, because the term that was seen
	// does not hold it any more.
	ErrEnded = lock.ErrEnded
	// ErrFenced reports that a guarded transaction must not be committed, because the
	// lease has ended.
	ErrFenced = lock.ErrFenced
	// ErrClosed reports that the manager was closed.
	ErrClosed = lock.ErrClosed
	// ErrUnsupported reports that the provider cannot do what was asked for.
	ErrUnsupported = lock.ErrUnsupported
)

// DescriptorError reports a descriptor that no lock can have.
type DescriptorError struct {
	// Field is the part that is wrong, such as "ttl"; Value is what it was, and Reason
	// what is wrong with it and what to write instead.
	Field, Value, Reason string
}

// Error says what is wrong where, and what to write instead.
func (e *DescriptorError) Error() string {
	if e.Value == "" {
		return e.Field + " " + e.Reason
	}
	return fmt.Sprintf("%s %q %s", e.Field, e.Value, e.Reason)
}

// HeldError is [ErrHeld] with what is known of the holder.
type HeldError struct {
	// Lock is the descriptor that was asked for.
	Lock Descriptor
	// Node is the holder's readable name, and Left the time until its lease ends if it
	// is not renewed. Both are empty when they are not known.
	Node string
	Left time.Duration
	// Waits says that the node does not hold the lock, and is ahead in the line of those
	// who wait for it.
	Waits bool
	// Tries says how often the lock was tried.
	Tries int
}

// Error names the lock and its holder, and says for how long it has the lock at most.
func (e *HeldError) Error() string {
	text := e.Lock.String() + " is held by " + cmp.Or(e.Node, "another")
	if e.Waits {
		text = e.Lock.String() + " is for " + e.Node + ", which has waited for longer or has a higher priority"
	} else if e.Left >= time.Millisecond {
		text += ", for " + span(e.Left) + " more unless it is renewed"
	}
	if e.Tries > 1 {
		text += fmt.Sprintf("; tried %d times", e.Tries)
	}
	return text
}

// span rounds a duration to what a person wants to know.
func span(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return d.Round(time.Minute).String()
	case d >= time.Second:
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// NestedError reports that a caller asked for a lock that it holds already, in a mode
// that its own does not cover. To wait for it would be to wait for itself.
type NestedError struct {
	// Lock is the descriptor that was asked for, and Held the mode that is held.
	Lock Descriptor
	Held Mode
}

// Error says which modes do not go together.
func (e *NestedError) Error() string {
	return fmt.Sprintf("%s was asked for by the holder of the same resources in mode %s; release them first, or take the wider mode at once", e.Lock, e.Held)
}

// asHeld returns a HeldError for a refusal of the provider, and any other error as it is.
func asHeld(err error, ds []Descriptor, tries int) error {
	d := ds[0]
	switch held, is := errors.AsType[*lock.HeldError](err); {
	case is:
		for _, other := range ds {
			if other.Key() == held.Key {
				d = other
			}
		}
		return &HeldError{d, held.Node, held.Left, held.Waits, tries}
	case errors.Is(err, ErrHeld):
		return &HeldError{Lock: d, Tries: tries}
	}
	return fmt.Errorf("%s: %w", d, err)
}
