package lock_test

import (
	"context"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/test/kit/simtest"
)

// simNode is one process: a keeper, its wire, and a worker for each key that
// takes the lock, writes under it, and gives it back.
type simNode struct {
	world  *simWorld
	name   string
	ttl    time.Duration
	wire   *simtest.Wire
	keeper *lock.Keeper
	life   context.Context
	die    context.CancelFunc
	// letting holds one who gives leases back. A second one would wait for the
	// first within sync.Once, where a bubble's time stands still.
	letting chan struct{}

	mu     sync.Mutex
	dead   bool
	leaves bool          // is being closed
	shut   bool          // was closed
	tenure time.Duration // how long a lease is kept; 0: the lock is not wanted
	work   map[string]context.CancelCauseFunc
	holds  map[string]*simHold
}

func startSimNode(world *simWorld, name string, ttl time.Duration, seed uint64) *simNode {
	n := &simNode{
		world: world, name: name, ttl: ttl, wire: simtest.NewWire(name, seed, world.journal), tenure: 5 * ttl,
		letting: make(chan struct{}, 1),
		work:    make(map[string]context.CancelCauseFunc), holds: make(map[string]*simHold),
	}
	n.life, n.die = context.WithCancel(context.Background())
	n.keeper = lock.NewKeeper(lock.KeeperOptions{Provider: &simProvider{world: world, wire: n.wire, shut: n.closed}})
	for i, key := range simKeys {
		offset := time.Duration(17*seed+uint64(i)+1) * 137 * time.Microsecond // nobody wakes at the same time
		world.work.Go(func() {
			if n.sleep(n.life, offset) {
				n.compete(key)
			}
		})
	}
	return n
}

// compete takes the lock again and again while it is wanted.
func (n *simNode) compete(key string) {
	r := lock.Request{Key: key, Region: "DEFAULT", TTL: n.ttl, Node: n.name}
	for n.sleep(n.life, n.ttl/7) {
		if n.term() == 0 {
			continue
		}
		ctx, cancel := context.WithCancelCause(n.life)
		n.note(key, cancel, nil)
		bitten := n.renewals().Count
		l, err := n.keeper.Acquire(ctx, r)
		if err == nil {
			h := newSimHold(n, l, bitten)
			n.note(key, cancel, h)
			h.work()
			n.note(key, cancel, nil)
		} else {
			n.world.tally.Count("attempt failed")
		}
		cancel(nil)
	}
}

// renewals is what befell renewals so far.
func (n *simNode) renewals() simtest.Bites { return n.wire.Bites("renew", "look") }

// sleep waits while ctx lives.
func (n *simNode) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (n *simNode) note(key string, cancel context.CancelCauseFunc, h *simHold) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.work[key], n.holds[key] = cancel, h
}

// abandon ends the context under which the key's lock is wanted or held.
func (n *simNode) abandon(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if cancel := n.work[key]; cancel != nil {
		cancel(errGivenUp)
	}
}

func (n *simNode) keepFor(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tenure = d
}

func (n *simNode) term() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tenure
}

func (n *simNode) killed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dead
}

func (n *simNode) leaving() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leaves
}

func (n *simNode) closed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shut && !n.dead
}

// trusted returns the leases that the process trusts.
func (n *simNode) trusted() (holds []*simHold) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, key := range simKeys {
		if h := n.holds[key]; h != nil && !n.dead && h.lease.Context().Err() == nil {
			holds = append(holds, h)
		}
	}
	return holds
}

// close ends the process in order. A keeper that was closed calls no more,
// unless it was not given the time to end.
func (n *simNode) close() {
	n.mu.Lock()
	n.leaves = true
	n.mu.Unlock()
	n.world.work.Go(func() {
		defer n.die()
		defer n.let()()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = n.keeper.Close(ctx) // a lease that could not be given back is no fault of Close
		if ctx.Err() == nil && n.wire.Busy("renew") && !n.killed() {
			n.world.broken("keeper is closed and still renews")
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.shut = ctx.Err() == nil
	})
}

// kill ends the process without a word.
func (n *simNode) kill() {
	n.mu.Lock()
	n.dead = true
	n.mu.Unlock()
	n.wire.Kill()
	n.die()
	n.world.work.Go(func() {
		defer n.let()()
		_ = n.keeper.Close(context.Background())
	})
}

// let waits until nobody else gives leases back; what it returns ends its turn.
func (n *simNode) let() (done func()) {
	n.letting <- struct{}{}
	return func() { <-n.letting }
}
