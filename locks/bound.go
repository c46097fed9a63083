package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// MaxHold is for a worker that is stuck, and would have its lock renewed for ever: that long
// after the acquisition the context of the lease ends with the cause [ErrHeldTooLong], and
// the lease is renewed no more. Others get the lock when the holder releases it, or at the
// end of its TTL. 0 is no bound; [Policy.MaxHold] may be shorter. Of locks that are acquired
// together, the shortest bound is that of all. The bound of a lease that is nested in another
// ends both, unless the nested one is released before.
func MaxHold(d time.Duration) HoldOption { return holdOption(func(w *waiting) { w.maxHold = d }) }

// HoldAtLeast is for work that must not begin again too soon: a lock that is released sooner
// than that after its acquisition stays held until then, also when the manager is closed and
// the process ends. Nobody holds it meanwhile, so that nobody can release it. A process that
// dies releases nothing: its lock ends as any other does. 0 is no bound. A lease that is
// nested in another has the bound of the first. The error is [ErrUnsupported] where the
// provider cannot do it.
func HoldAtLeast(d time.Duration) HoldOption {
	return holdOption(func(w *waiting) { w.atLeast = d })
}

// check returns a [*DescriptorError] for options that cannot be, and [ErrUnsupported] for
// those that the provider does not have.
func (m *Manager) check(w waiting) error {
	if w.wrong != nil {
		return w.wrong
	}
	if w.maxHold < 0 {
		return &DescriptorError{"max-hold", w.maxHold.String(), "is negative; use 1h, for example, or 0 for no bound"}
	}
	if w.atLeast < 0 {
		return &DescriptorError{"hold-at-least", w.atLeast.String(), "is negative; use 1m, for example, or 0 for no bound"}
	}
	if m.can.Delayer == nil && w.atLeast > 0 {
		return fmt.Errorf("hold a lock for at least %s: %w", w.atLeast, ErrUnsupported)
	}
	return nil
}

// bound makes the leases end when they have been held for as long as how says, and their
// locks no sooner than it says.
func (m *Manager) bound(ds []Descriptor, held []*lock.Lease, how waiting) {
	for i, l := range held {
		l.HoldAtLeast(how.atLeast)
		if how.maxHold > 0 {
			l.EndAfter(how.maxHold)
		}
		context.AfterFunc(l.Context(), func() {
			if errors.Is(context.Cause(l.Context()), ErrHeldTooLong) {
				m.metrics.overstayed.WithLabelValues(m.metrics.labels(ds[i])...).Inc()
			}
		})
	}
}

// maxHold returns the shortest bound of the locks; 0 for none.
func (p *policies) maxHold(ds []Descriptor, own time.Duration) time.Duration {
	limit := own
	for _, d := range ds {
		for _, rule := range p.rules {
			if rule.MaxHold > 0 && rule.covers(d) {
				limit = min(cmp.Or(limit, math.MaxInt64), rule.MaxHold)
			}
		}
	}
	return limit
}
