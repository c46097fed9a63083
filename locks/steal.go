package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/lock"
)

// Nobody lets no node steal, as the only name in [Policy.StealBy].
const Nobody = "nobody"

// StolenBy says who steals, and why, for the records of the provider. Without it, or with
// an empty name, that is [Options.Node]; the reason may be empty.
func StolenBy(name, reason string) StealOption {
	return stealOption(func(w *waiting) { w.by = lock.By{Actor: name, Reason: reason} })
}

// Steal takes a lock from a holder whose lease may still run: from the one term that
// [Manager.Find] has found, and only if its lease was not renewed since. It is an operator's
// decision, so it tries once and passes all who wait in line. The descriptor is of the same
// subject and resources as what was found. No intents are taken with it. The end of ctx ends
// the lease, as that of [Manager.Acquire].
//
// The former holder works on until it notices: at its next renewal, within a third of its
// TTL, or at the end of its lease if it cannot renew it. What it does under [Lease.Guard], or
// with its fencing token where that is compared, is refused at once. Where several share the
// lock, the steal ends that one lease; the lock is had if the others agree with the mode that
// is wanted.
//
// The error is [ErrRenewed] when the holder has renewed its lease, [ErrEnded] when its term
// does not hold the lock any more, a [*HeldError] when another who shares the lock keeps out
// the mode, and one that is [ErrHeld] when another transaction has locked the row: nothing
// has changed then. It is [ErrUnsupported] where the provider cannot steal, and otherwise as
// that of Acquire. A [*PolicyError] may be of a rule that is
// for the lock as it was found.
func (m *Manager) Steal(ctx context.Context, found Found, d Descriptor, options ...StealOption) (*Lease, error) {
	var how waiting
	for i, o := range options {
		if o == nil {
			return nil, noOption(i)
		}
		o.steals(&how)
	}
	how.by.Actor = cmp.Or(how.by.Actor, m.opts.Node)
	if err := m.check(how); err != nil {
		return nil, err
	}
	d, err := m.prepare(d)
	switch {
	case err != nil:
		return nil, err
	case d.Key() != found.Lock.Key():
		return nil, &DescriptorError{"resources", d.String(), "are not those of the lock that was found, " + found.Lock.String()}
	}
	if h := m.heldBy(ctx, d); h != nil {
		return nil, &NestedError{d, h.lock.Mode}
	}
	how.maxHold = m.rules.policies.maxHold([]Descriptor{d}, how.maxHold)
	leases, err := m.take(ctx, []Descriptor{d}, how, func(ctx context.Context) ([]*lock.Lease, int, error) {
		l, err := m.steal(ctx, found, d, how.by)
		return []*lock.Lease{l}, 1, err
	})
	if err != nil {
		return nil, err
	}
	return leases[0], nil
}

func (m *Manager) steal(ctx context.Context, found Found, d Descriptor, by lock.By) (*lock.Lease, error) {
	r, err := m.request(d)
	if err != nil {
		return nil, err
	}
	seen, err := m.holder(ctx, d.Key(), found.Term)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	held, _ := foundOf(seen)
	if err := m.rules.policies.mayBeStolen(d, held.Lock, m.opts.Node); err != nil {
		return nil, err
	}
	seen.Mark = found.Mark
	if err := m.enter(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	defer m.exit()
	l, err := m.keeper.Steal(ctx, r, seen, by)
	switch {
	case errors.As(err, new(*lock.HeldError)):
		return nil, asHeld(err, []Descriptor{d}, 1)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	return l, nil
}

// holder returns the holder of the lock that has the term, as the provider has it: what a
// policy forbids must not depend on what a caller has made of it. The error is [ErrEnded] when
// there is none.
func (m *Manager) holder(ctx context.Context, key, term string) (lock.Held, error) {
	if m.can.Finder == nil {
		return lock.Held{}, ErrUnsupported
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	q := lock.Query{Region: m.opts.Region, Key: key, Limit: findPage}
	for {
		page, err := m.can.Finder.Find(ctx, q)
		if err != nil {
			return lock.Held{}, err
		}
		if i := slices.IndexFunc(page, func(h lock.Held) bool { return h.Term == term }); i >= 0 {
			return page[i], nil
		}
		if len(page) < q.Limit {
			return lock.Held{}, ErrEnded
		}
		q.After = page[len(page)-1]
	}
}

// mayBeStolen returns a [*PolicyError] where a rule for the lock, as it is wanted or as it
// was found, does not let the node steal it.
func (p *policies) mayBeStolen(d, found Descriptor, node string) error {
	for _, rule := range p.rules {
		if len(rule.StealBy) == 0 || slices.Contains(rule.StealBy, node) && !rule.isStolenByNobody() || !rule.covers(d) && !rule.covers(found) {
			continue
		}
		detail := fmt.Sprintf("this node, %s, may not steal it; %s may", node, strings.Join(rule.StealBy, " or "))
		if rule.isStolenByNobody() {
			detail = "nobody may steal it; wait until its lease is over"
		}
		return &PolicyError{d, rule.Name, rule.because(detail)}
	}
	return nil
}

func (p Policy) isStolenByNobody() bool { return slices.Contains(p.StealBy, Nobody) }

// checkStealBy says what is wrong with the names; empty for nothing.
func (p Policy) checkStealBy() string {
	switch {
	case slices.Contains(p.StealBy, ""):
		return "a node that may steal has no name"
	case p.isStolenByNobody() && len(p.StealBy) > 1:
		return "steal-by has nobody and names of nodes; use one of both"
	}
	return ""
}
