package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/observerd/observerd/internal/lock"
)

// Beats are signs of life that holders write beside their records. They compare nothing, so
// both look at what the other writes: the holder reads its record after each beat, and a process
// that has replaced the record of a silent holder looks for a beat after that. Of a beat and a
// replacement at the same moment, at least one is seen, whatever the clocks say.
type Beats interface {
	// Beat changes the version that Get returns of a record, as long as it is not replaced, and
	// returns the new one: also beside an error where it may have been carried out.
	Beat(ctx context.Context, r Record) (version string, err error)
	// Version returns the version that a record would have by now if nothing had replaced it.
	Version(ctx context.Context, r Record) (string, error)
}

// errUnseen reports that others cannot see yet that the holder lives.
var errUnseen = errors.New("the store does not show the renewal")

// beat shows that the holder of a record lives, and reads what others see of it.
func (p *Provider) beat(ctx context.Context, g lock.Grant) (err error) {
	r := p.seen.last(g.Region, g.Key)
	if r.Term != g.Term {
		if r, err = p.get(ctx, g.Region, g.Key); err != nil {
			return err
		}
	}
	if err = r.keeps(g); err != nil {
		return err
	}
	version, err := p.opts.Beats.Beat(ctx, r)
	now, failed := p.get(ctx, g.Region, g.Key)
	switch {
	case failed != nil:
		return errors.Join(err, failed)
	case now.Term != g.Term:
		return lock.ErrLost
	case now.Version != version: // An earlier beat, which others saw come, renews nothing now.
		return cmp.Or(err, errUnseen)
	}
	return nil
}

// silent returns an error where the holder whose record was replaced has written since it was
// read: it may have found its record there, and works. The grant is not released then: its
// record keeps others out for as long as that holder trusts its lease.
func (p *Provider) silent(ctx context.Context, g lock.Grant, before Record) error {
	if p.opts.Beats == nil {
		return nil
	}
	version, err := p.opts.Beats.Version(ctx, before)
	if err == nil && version != before.Version {
		err = &lock.HeldError{Key: g.Key, Node: before.Node, Left: g.TTL}
	}
	if err != nil {
		return fmt.Errorf("acquire lock %s of a holder that was silent: %w", g.Key, err)
	}
	return nil
}
