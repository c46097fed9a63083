package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/test/kit/testbed"
)

// contender is one thread of ours.
type contender struct {
	side     side
	witness  witness
	provider lock.Provider
	keeper   *lock.Keeper
	holder   string
	random   *rand.Rand
	tally    *tally
}

func (c *contender) run(ctx context.Context, end time.Time) error {
	for time.Now().Before(end) && ctx.Err() == nil {
		r := c.side.request(c.side.names[c.random.IntN(len(c.side.names))])
		r.Node = c.holder
		if c.side.shares {
			r.Mode = []lock.Mode{lock.Exclusive, lock.Shared}[c.random.IntN(2)]
		}
		var err error
		if c.random.IntN(abandonEvery) == 0 {
			err = c.abandon(ctx, r)
		} else {
			err = c.contend(ctx, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// abandon takes a lock as a node that dies with it.
func (c *contender) abandon(ctx context.Context, r lock.Request) error {
	_, err := c.provider.Acquire(ctx, r)
	if err == nil {
		c.tally.abandoned.Add(1)
	}
	return unlessHeld(err)
}

func unlessHeld(err error) error {
	if errors.Is(err, lock.ErrHeld) {
		return nil
	}
	return err
}

func (c *contender) contend(ctx context.Context, r lock.Request) error {
	lease, err := c.keeper.AcquireWithin(ctx, r, wait)
	if err != nil {
		c.tally.refused.Add(1)
		return unlessHeld(err)
	}
	c.tally.acquired.Add(1)
	work := c.work
	if r.Mode == lock.Shared {
		work = c.read
	}
	err = work(ctx, lease, r.Name)
	if lost := lease.Release(ctx); errors.Is(lost, lock.ErrLost) {
		c.tally.lost.Add(1)
	} else {
		err = errors.Join(err, lost)
	}
	return err
}

// work is the section. Now and then it lasts longer than the TTL.
func (c *contender) work(ctx context.Context, lease *lock.Lease, name string) error {
	count, err := c.witness.enter(ctx, name, c.holder, lease.Fence())
	if err != nil {
		return err
	}
	c.hold(lease)
	return c.witness.leave(ctx, name, c.holder, count)
}

// read is the section of one who shares the lock.
func (c *contender) read(ctx context.Context, lease *lock.Lease, name string) error {
	id, err := c.witness.read(ctx, name)
	if err != nil {
		return err
	}
	c.hold(lease)
	return c.witness.unread(ctx, id)
}

func (c *contender) hold(lease *lock.Lease) {
	d := time.Duration(c.random.Int64N(int64(hold) + 1))
	if c.random.IntN(longEvery) == 0 {
		c.tally.long.Add(1)
		d = ttl + ttl/2
	}
	_ = testbed.Wait(lease.Context(), d) // The lease may end first.
}
