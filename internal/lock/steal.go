package lock

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrRenewed reports that a lease is not stolen, because it was renewed since it was
	// seen.
	ErrRenewed = errors.New("the lease was renewed since it was seen: its holder lives; look again")
	// ErrEnded reports that a lease is not stolen, because the term that was seen does not
	// hold the lock any more. It is an [ErrLost].
	ErrEnded = fmt.Errorf("%w: the term no longer holds the lock; read it again", ErrLost)
)

// By is who does something that is noted, and why.
type By struct {
	// Actor is a user or a node.
	Actor string
	// Reason is for people, and may be empty.
	Reason string
}

// Stealer takes a lock from a holder whose lease still runs.
type Stealer interface {
	// Steal takes the lock of the request from the one term that [Finder.Find] has found
	// with it, and ends that lease, unless it was renewed since. It passes those who wait
	// in line. The grant has a term of its own and a greater fence; the holder's renewals,
	// guards and fenced writes are refused from then on. Where several share the lock, the
	// others keep it. by is for the provider's records.
	//
	// The error is [ErrRenewed] or [ErrEnded] when what was seen is not so any more, a
	// [HeldError] when another holder keeps out the mode that is wanted, and one that is
	// [ErrHeld] when another transaction has locked the row. Nothing has changed then.
	// After any other error the lock may have been stolen, as it may have been acquired
	// after one of Acquire.
	Steal(ctx context.Context, r Request, seen Held, by By) (Grant, error)
}

// Steal tries once to take the lock from the term that was seen; see [Stealer]. Otherwise it
// is [Keeper.Acquire]. The error is [ErrUnsupported] when the provider has no Stealer.
func (k *Keeper) Steal(ctx context.Context, r Request, seen Held, by By) (*Lease, error) {
	if k.can.Stealer == nil {
		return nil, fmt.Errorf("steal lock %s: %w", r.Key, ErrUnsupported)
	}
	return k.acquireOne(ctx, r, func(ctx context.Context, r Request) (Grant, error) { return k.can.Stealer.Steal(ctx, r, seen, by) })
}
