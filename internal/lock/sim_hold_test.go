package lock_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/test/kit/simtest"
)

var errGivenUp = errors.New("work given up")

// simHold is one lease of a process, from its grant to its end.
type simHold struct {
	world  *simWorld
	node   *simNode
	lease  *lock.Lease
	grant  lock.Grant
	bitten int // renewals that were disturbed before the grant

	mu        sync.Mutex
	ended     time.Time
	releasing bool // the process itself gives the lease back, which had not ended
	released  bool
}

// newSimHold watches a lease that was just acquired.
func newSimHold(n *simNode, l *lock.Lease, bitten int) *simHold {
	h := &simHold{world: n.world, node: n, lease: l, grant: l.Grant(), bitten: bitten}
	h.world.mu.Lock()
	h.world.holds[h.grant.Term] = h
	h.world.mu.Unlock()
	h.expectLive("acquired lease")
	context.AfterFunc(l.Context(), h.over)
	return h
}

func (h *simHold) trusted() bool { return !h.node.killed() && h.lease.Context().Err() == nil }

// expectLive holds the lease against the provider: while it is trusted, it
// stands there.
func (h *simHold) expectLive(what string) {
	if !h.stolen() && !h.node.killed() && !h.world.locks.Holds(h.grant) {
		h.world.broken("%s is trusted and does not stand at the provider", what)
	}
}

// over judges the end of the lease's context, at the moment at which it came.
func (h *simHold) over() {
	cause := context.Cause(h.lease.Context())
	h.mu.Lock()
	if !errors.Is(cause, errGivenUp) { // such a lease is renewed until its release
		h.ended = time.Now()
	}
	releasing := h.releasing
	h.mu.Unlock()
	switch {
	case h.node.killed():
	case errors.Is(cause, errGivenUp):
	case errors.Is(cause, lock.ErrClosed) && h.node.leaving():
	case errors.Is(cause, context.Canceled) && releasing:
	case errors.Is(cause, lock.ErrLost):
		h.world.tally.Count("lease lost")
		h.lost()
	default:
		h.world.broken("lease ended because of %v", cause)
	}
}

// lost judges a lease that the process lost: it still stood until then, and a
// fault was to blame.
func (h *simHold) lost() {
	h.world.mu.Lock()
	h.world.lost++
	h.world.mu.Unlock()
	if h.stolen() || h.isReleased() {
		return
	}
	if !h.world.locks.Holds(h.grant) {
		h.world.broken("trust outlived the lease")
	}
	// Whatever fails is tried again after a twelfth of the TTL, or 100 ms.
	recent := h.node.ttl/6 + 300*time.Millisecond
	if bites := h.node.renewals(); bites.Count == h.bitten || time.Since(bites.Last) > recent {
		h.world.broken("lease lost without a fault")
	}
}

// stolen reports whether the provider took the lease away before its time.
func (h *simHold) stolen() bool {
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	return h.world.stolen[h.grant.Term]
}

func (h *simHold) isReleased() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.released
}

// write is a fenced write: the process looks at its lease, and what it sends
// then is refused unless the term still holds the lock.
func (h *simHold) write() {
	if !h.trusted() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = simtest.Do(ctx, h.node.wire, "write", h.grant.Key, func(context.Context) error {
		switch {
		case h.world.locks.Holds(h.grant):
			h.accepted()
			return nil
		case h.trusted():
			h.expectLive("writer's lease")
		}
		h.world.tally.Count("stale write refused")
		return lock.ErrFenced
	})
}

// accepted judges a write that the provider let pass.
func (h *simHold) accepted() {
	h.world.tally.Count("write accepted")
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	if h.grant.Fence < h.world.fences[h.grant.Key] {
		h.world.brokenLocked("write of an earlier fence accepted")
	}
}

// work writes under the lease until it is to be given back, and does that.
func (h *simHold) work() {
	ctx := h.lease.Context()
	for h.node.sleep(ctx, h.node.ttl/5) && time.Since(h.grant.Began) < h.node.term() {
		h.write()
	}
	h.release(ctx)
}

// release gives the lease back, on a context that may have ended.
func (h *simHold) release(ctx context.Context) {
	defer h.node.let()()
	h.mu.Lock()
	h.releasing = h.lease.Context().Err() == nil
	h.mu.Unlock()
	bitten := h.node.wire.Bites("release").Count
	err := h.lease.Release(ctx)
	h.mu.Lock()
	h.released = true
	h.mu.Unlock()
	switch {
	case h.node.killed() || h.node.leaving(): // then it was Close that gave the lease back
	case err == nil && h.world.locks.Holds(h.grant):
		h.world.broken("released lease stands at the provider")
	case h.node.wire.Bites("release").Count == bitten && !h.stolen() && h.world.locks.Holds(h.grant):
		h.world.broken("lease that was given up stands at the provider")
	case h.lease.Context().Err() == nil:
		h.world.broken("released lease is trusted")
	}
}

// over reports whether the lease of that term had ended before this time.
func (w *simWorld) over(term string) bool {
	w.mu.Lock()
	h := w.holds[term]
	w.mu.Unlock()
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.ended.IsZero() && h.ended.Before(time.Now())
}
