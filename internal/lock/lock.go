// Package lock says what a lock is: a lease that a provider grants for a
// limited time, and a keeper that renews it and takes the work's context away
// the moment it can no longer be trusted.
//
// A lease cannot promise that two holders never overlap: a process may sleep
// past its TTL. What makes an overlap harmless is the term: every acquisition
// has its own, and a guarded write renews the lease row by its term in the
// same statement as the write, so a stale holder changes nothing.
package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrHeld reports that another term holds the lock. Providers return it
	// wrapped in a [HeldError].
	ErrHeld = errors.New("lock is held by another")
	// ErrLost reports that a lease has ended: its row is gone, expired or
	// belongs to another term, or it could not be renewed in time. It is the
	// cause of a lost lease's context.
	ErrLost = errors.New("lease was lost")
	// ErrFenced reports that a guarded write was refused because the lease had
	// ended before the write arrived. Nothing was written.
	ErrFenced = errors.New("stale commit refused: the lease had ended")
)

// Request describes a lock that is wanted.
type Request struct {
	// Key names the lock's row, at most 36 bytes (see [Key]). Required.
	Key string
	// Region separates applications that share a table. Required.
	Region string
	// TTL is how long the lease lives without a renewal. Required, positive.
	TTL time.Duration
	// Name is the lock's readable name, Node the readable name of the holder,
	// Descriptor what the lock is about. For people; all may be empty.
	Name, Node, Descriptor string
}

// Grant is one acquisition of a lock, as the provider gave it.
type Grant struct {
	Request
	// Term identifies this acquisition and no other. Renewal, release and
	// every guarded write name it.
	Term string
	// Fence grows with every acquisition of the same key. Outside systems that
	// cannot check the term can refuse a smaller fence.
	Fence int64
	// Began is the local, monotonic time at which the attempt began. Trust
	// in the lease counts from here, so that a slow answer does not stretch it.
	Began time.Time
}

// HeldError is [ErrHeld] with what is known of the holder. Zero values mean
// that the provider does not know.
type HeldError struct {
	Key  string
	Node string
	// Left is how long the holder's lease still runs if it is not renewed.
	Left time.Duration
}

// Error names the lock and its holder.
func (e *HeldError) Error() string {
	if e.Node == "" {
		return fmt.Sprintf("lock %s is held by another", e.Key)
	}
	return fmt.Sprintf("lock %s is held by %s", e.Key, e.Node)
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Renewal is what a provider knows of one lease after a renewal.
type Renewal int

const (
	// Unknown says nothing: the row was busy, or the provider could not look.
	// The lease stays trusted until its time is over.
	Unknown Renewal = iota
	// Renewed says that the lease runs for another TTL.
	Renewed
	// Lost says that the lease has ended.
	Lost
)

// Provider grants leases. [github.com/observerd/observerd/internal/lock/locktest]
// is the contract that every provider passes. Implementations are safe for
// concurrent use, and every call ends when its context does.
type Provider interface {
	// Acquire tries once. It returns an error that is [ErrHeld] when another
	// term holds the lock. Two acquisitions never share a term, so a lock is
	// not re-entrant.
	Acquire(ctx context.Context, r Request) (Grant, error)
	// Renew extends each lease by its own TTL, if its term still holds it; an
	// expired lease is not revived. The result has one entry for each grant,
	// in order. An error means that all are [Unknown].
	Renew(ctx context.Context, grants []Grant) ([]Renewal, error)
	// Release gives the lease back. It returns an error that is [ErrLost] when
	// the term did not hold it any more.
	Release(ctx context.Context, g Grant) error
}
