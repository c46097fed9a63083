// Package lock defines locks: leases that a provider grants for a limited time, and a
// keeper that renews them and cancels the context of the work at the moment its lease
// can no longer be trusted.
//
// A lease cannot promise that two holders never overlap: a process may sleep past its
// TTL. The term makes an overlap harmless: every acquisition has its own, and a fenced
// write renews the lease row by its term in the same statement as the write, so a
// stale holder changes nothing.
package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/turn"
)

var (
	// ErrHeld reports that another term holds the lock. Providers return it
	// wrapped in a [HeldError].
	ErrHeld = errors.New("lock is held by another")
	// ErrLost reports that a lease has ended: its row is gone, expired or
	// belongs to another term, or it could not be renewed in time. It is the
	// cause of a lost lease's context.
	ErrLost = errors.New("lease was lost")
	// ErrFenced reports that a fenced write was refused because the lease had
	// ended before the write arrived. Nothing was written.
	ErrFenced = errors.New("stale commit refused: the lease had ended")
	// ErrBusy reports that an attempt found no connection of this process free in time.
	// The provider's database was not asked.
	ErrBusy = turn.ErrBusy
	// ErrRefused reports that a provider's server refuses the account, its password or what it
	// wants to do. Trying again cannot help.
	ErrRefused = errors.New("the server refuses this client")
	// ErrUnsupported reports that a provider cannot do what was asked for.
	ErrUnsupported = errors.New("not supported by this lock provider")
)

// Request describes a lock that is wanted.
type Request struct {
	// Key is what is locked. Required.
	Key string
	// Region separates applications that share a table. Required.
	Region string
	// TTL is how long the lease lives without a renewal. Required, positive.
	TTL time.Duration
	// Mode is what other holders may do. Empty means [Exclusive], of a key that is locked
	// in no other mode: a provider can then do without a look at those that share.
	Mode Mode
	// Place is where the caller stands in the line of those who wait, for a provider that
	// has a [Line].
	Place Place
	// Holds are the keys of this region that the caller holds, and their modes; see [Line].
	Holds map[string]Mode
	// Name is the lock's readable name, Node the readable name of the holder,
	// Descriptor a description of the lock, and Metadata a JSON object of texts. For
	// people; all may be empty.
	Name, Node, Descriptor, Metadata string
}

// Grant is one acquisition of a lock, as the provider gave it.
type Grant struct {
	Request
	// Term identifies this acquisition and no other. Renewal, release and
	// every fenced write name it.
	Term string
	// Fence grows with every acquisition of the same key. Outside systems that
	// cannot check the term can refuse a smaller fence.
	Fence int64
	// Recovered says that the lock was taken from a holder which did not release it.
	Recovered bool
	// Began is the local, monotonic time at which the attempt began. Trust
	// in the lease counts from here, so that a slow answer does not stretch it.
	Began time.Time
}

// HeldError is [ErrHeld] with the known facts about the holder. Zero values are
// unknown.
type HeldError struct {
	Key  string
	Node string
	// Left is the time until the holder's lease ends if it is not renewed.
	Left time.Duration
	// Waits says that Node does not hold the lock, and is ahead in the line of those who
	// wait for it.
	Waits bool
}

// Error names the lock and its holder.
func (e *HeldError) Error() string {
	if e.Node == "" {
		return fmt.Sprintf("lock %s is held by another", e.Key)
	}
	if e.Waits {
		return fmt.Sprintf("lock %s is for %s, which has waited for longer or has a higher priority", e.Key, e.Node)
	}
	return fmt.Sprintf("lock %s is held by %s", e.Key, e.Node)
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Renewal is the result of a renewal for one lease.
type Renewal int

const (
	// Unknown means that the row was busy, or that the provider could not read it. The
	// lease stays trusted until its time is over.
	Unknown Renewal = iota
	// Renewed means that the lease lasts for another TTL.
	Renewed
	// Lost means that the lease has ended.
	Lost
)

// Provider grants leases. [github.com/observerd/observerd/internal/lock/locktest]
// is the contract that every provider passes, with what it says that it has. Implementations
// are safe for concurrent use, and every call ends when its context does.
type Provider interface {
	// Acquire tries once. It returns an error that is [ErrHeld] when another
	// term holds the lock, and one that is [ErrUnsupported] for a mode that the
	// provider does not have. Two acquisitions never share a term, so a lock is
	// not re-entrant.
	Acquire(ctx context.Context, r Request) (Grant, error)
	// Renew extends each lease by its own TTL, if its term still holds it; an
	// expired lease is not revived. The result has one entry for each grant,
	// in order. An error says why some are [Unknown]; without entries, all are.
	Renew(ctx context.Context, grants []Grant) ([]Renewal, error)
	// Release ends the lease. It returns an error that is [ErrLost] when
	// the term did not hold it any more.
	Release(ctx context.Context, g Grant) error
	// Capabilities says what else the provider has: the same at each call, without a look
	// at what keeps the locks. A provider that wraps another one and overrides a method of
	// an interface in it puts itself in its place there.
	Capabilities() Capabilities
}

// Sets takes several locks at once.
type Sets interface {
	// AcquireAll takes all locks or none, in one call. Their keys must differ. The
	// grants are in the order of the requests; the errors are those of Acquire, and a
	// [HeldError] names a lock that another term holds.
	AcquireAll(ctx context.Context, requests []Request) ([]Grant, error)
}

// Extender changes the TTL of a lease while it is held.
type Extender interface {
	// Extend lets the lease run for ttl from now, and from each later renewal. The
	// grant has the TTL of before. It returns an error that is [ErrLost] when the term
	// does not hold the lock any more.
	Extend(ctx context.Context, g Grant, ttl time.Duration) error
}

// Guard makes transactions of the database that keeps the leases depend on them.
type Guard interface {
	// GuardSQL returns a statement for such a transaction, and its arguments. It
	// changes one row when the term holds the lock, which then stays held until the
	// transaction ends, and no row otherwise.
	GuardSQL(g Grant) (text string, args []any)
}

// Failure is how often a lock was not to be had because another had it.
type Failure struct {
	Region, Key string
	// Subject and Predicate are those of the callers.
	Subject, Predicate string
	// Count is how many acquisitions have failed.
	Count int64
}

// FailureLog keeps how often locks were not to be had, for people.
type FailureLog interface {
	// NoteFailures adds the failures to what is known. They differ in their region, key or
	// predicate. After an error they may have been added all the same.
	NoteFailures(ctx context.Context, failures []Failure) error
}
