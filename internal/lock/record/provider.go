package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
)

// tries is how often a step is tried that meets the write of another.
const tries = 3

// Options configure a provider.
type Options struct {
	// Records keep the locks. Required.
	Records Records
	// Numbered says that the store numbers all writes of all records, one after the other,
	// also over deletions: etcd's revision, Kubernetes' resource version, Consul's index.
	// Otherwise the fence is counted in the records, which are never deleted.
	Numbered bool
	// Beats renew leases, where that costs less than a Put. Nil renews by Put.
	Beats Beats
	// Capabilities are the name and the numbers, and what must be closed.
	Capabilities lock.Capabilities
}

// Provider grants exclusive locks. It is safe for concurrent use. One provider for a process
// sees more than several.
type Provider struct {
	opts Options
	seen seen
}

// New returns the provider of the store's locks.
func New(o Options) *Provider {
	return &Provider{opts: o, seen: seen{records: make(map[[2]string]Record)}}
}

// Capabilities implements [lock.Provider].
func (p *Provider) Capabilities() lock.Capabilities {
	c := p.opts.Capabilities
	c.Extender, c.Finder, c.Stealer = p, p, p
	return c
}

// Acquire implements [lock.Provider]. In a store that numbers its writes a free lock has no
// record, so one is written before any is read, unless somebody had the lock a moment ago.
func (p *Provider) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	unread := p.opts.Numbered && p.seen.last(r.Region, r.Key).Term == ""
	g, at, err := p.take(ctx, "acquire", r, unread, func(at Record) error {
		if left := at.left(); at.Term != "" && left > 0 {
			return &lock.HeldError{Key: r.Key, Node: at.Node, Left: left}
		}
		return nil
	})
	if err == nil && at.Term != "" {
		err = p.silent(ctx, g, at)
	}
	if err != nil {
		return lock.Grant{}, err
	}
	return g, nil
}

// Steal implements [lock.Stealer]. Nothing notes who does it.
func (p *Provider) Steal(ctx context.Context, r lock.Request, seen lock.Held, _ lock.By) (lock.Grant, error) {
	g, _, err := p.take(ctx, "steal", r, false, func(at Record) error {
		switch {
		case at.Term == "" || at.Term != seen.Term:
			return lock.ErrEnded
		case at.Version != seen.Mark:
			return lock.ErrRenewed
		}
		return nil
	})
	return g, err
}

// take writes a new term in place of a record that may be replaced, and returns that. With
// unread, the first try is to write where there is none.
func (p *Provider) take(ctx context.Context, what string, r lock.Request, unread bool, may func(Record) error) (g lock.Grant, at Record, err error) {
	g = lock.Grant{Request: r, Term: uuid.NewString(), Began: time.Now()}
	err = context.Cause(ctx)
	if !r.Mode.Alone() {
		err = fmt.Errorf("in mode %s: %w", r.Mode, lock.ErrUnsupported)
	}
	for try := 0; try < tries && (err == nil || errors.Is(err, ErrConflict)); try++ {
		if err = nil; try > 0 || !unread {
			at, err = p.get(ctx, r.Region, r.Key)
			at.TTL = cmp.Or(at.TTL, r.TTL)
		}
		if err == nil {
			err = may(at)
		}
		if err == nil {
			if g.Fence, err = p.replace(ctx, at, g); err == nil {
				g.Recovered = at.Term != ""
				return g, at, nil
			}
		}
	}
	if errors.Is(err, ErrConflict) {
		err = &lock.HeldError{Key: r.Key} // Others come and go.
	}
	return lock.Grant{}, at, fmt.Errorf("%s lock %s: %w", what, r.Key, err)
}

// replace writes the grant's term in place of a record, and returns its fence. A term that may
// be there after an error is given back.
func (p *Provider) replace(ctx context.Context, at Record, g lock.Grant) (int64, error) {
	stored, err := p.put(ctx, taken(g, at))
	if err != nil && !errors.Is(err, ErrConflict) {
		lock.GiveBack(ctx, p, slog.New(slog.DiscardHandler), g) // At worst it lasts for its TTL.
	}
	return stored.fence(), err
}

// Release implements [lock.Provider]. A release that was not answered counts as the loss of the
// lease if another has the lock by then.
func (p *Provider) Release(ctx context.Context, g lock.Grant) error {
	return p.change(ctx, "release", g, func(r Record) (Record, error) {
		r.Term = ""
		return r, nil
	})
}
