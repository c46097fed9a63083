package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/test/kit/simtest"
)

// simWorld is a provider and all who use it, and what must be true of them.
type simWorld struct {
	tally   *simtest.Tally
	journal *simtest.Journal
	locks   locktest.Memory
	clock   *simtest.Clock
	work    sync.WaitGroup

	mu     sync.Mutex
	wrong  string // the first rule that was broken
	lost   int    // leases lost by living processes
	holds  map[string]*simHold
	fences map[string]int64 // highest fence that was granted, by key
	// stolen are the terms that the provider took away before their time: an
	// operator did, somebody took their holder for dead, or its clock jumped.
	stolen map[string]bool
}

func newSimWorld(tally *simtest.Tally) *simWorld {
	w := &simWorld{
		tally: tally, journal: simtest.NewJournal(), clock: simtest.NewClock(),
		holds: make(map[string]*simHold), fences: make(map[string]int64), stolen: make(map[string]bool),
	}
	w.locks.Clock = w.clock.Now
	return w
}

// broken notes that a rule was broken. Its text is the same whenever the rule
// is broken in the same way, so that rapid can tell.
func (w *simWorld) broken(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.brokenLocked(format, args...)
}

func (w *simWorld) brokenLocked(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
		w.journal.Close(w.wrong)
	}
}

// losses returns how many leases were lost so far.
func (w *simWorld) losses() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

func (w *simWorld) verdict() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrong
}

// steal ends the key's lease before its time.
func (w *simWorld) steal(key string) {
	if g, held := w.locks.Holder(want(key)); held {
		w.excuse(g.Term)
		w.locks.Expire(g)
	}
}

func (w *simWorld) excuse(term string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stolen[term] = true
}

// jump moves the provider's clock. A jump ahead shortens every lease; one back ends none.
func (w *simWorld) jump(d time.Duration) {
	before := make(map[string]lock.Grant)
	for _, key := range simKeys {
		if g, held := w.locks.Holder(want(key)); held {
			before[key] = g
		}
	}
	w.clock.Jump(d)
	for _, g := range before {
		if d > 0 {
			w.excuse(g.Term)
		}
	}
}

// granted judges a new grant: nobody else trusts the lock, and its fence is
// higher than any before.
func (w *simWorld) granted(g lock.Grant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g.Fence <= w.fences[g.Key] {
		w.brokenLocked("fence does not grow")
	}
	w.fences[g.Key] = g.Fence
	for term, h := range w.holds {
		switch {
		case h.grant.Key != g.Key:
		case h.trusted() && !w.stolen[term]:
			w.brokenLocked("lock granted while another trusts its lease")
		case !h.isReleased():
			w.tally.Count("taken over")
		}
	}
}

// simProvider is the provider as one process sees it.
type simProvider struct {
	world *simWorld
	wire  *simtest.Wire
	shut  func() bool // the keeper was closed
}

func (p *simProvider) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	p.expectOpen()
	began := time.Now()
	return simtest.Call(ctx, p.wire, "acquire", r.Key, func(ctx context.Context) (lock.Grant, error) {
		g, err := p.world.locks.Acquire(ctx, r)
		if err == nil {
			p.world.granted(g)
		}
		g.Began = began
		return g, err
	})
}

// Renew may be answered with Unknown at the fault of that name.
func (p *simProvider) Renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	p.expectOpen()
	for _, g := range grants {
		if p.world.over(g.Term) {
			p.world.broken("lease renewed after its end")
		}
	}
	renewals, err := simtest.Call(ctx, p.wire, "renew", "", func(ctx context.Context) ([]lock.Renewal, error) {
		return p.world.locks.Renew(ctx, grants)
	})
	if busy := simtest.Do(ctx, p.wire, "look", "", func(context.Context) error { return nil }); err == nil && errors.Is(busy, simtest.ErrFault) {
		return make([]lock.Renewal, len(grants)), nil // all unknown
	}
	return renewals, err
}

func (p *simProvider) Release(ctx context.Context, g lock.Grant) error {
	return simtest.Do(ctx, p.wire, "release", g.Key, func(ctx context.Context) error { return p.world.locks.Release(ctx, g) })
}

func (p *simProvider) Capabilities() lock.Capabilities { return lock.Capabilities{Name: "sim"} }

func (p *simProvider) expectOpen() {
	if p.shut() {
		p.world.broken("keeper calls the provider after it was closed")
	}
}
