package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// Renew implements [lock.Provider], in one round trip.
func (p *Provider) Renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	calls := make([]call, len(grants))
	for i, g := range grants {
		keys, err := p.keysOf(g.Request)
		if err != nil {
			return nil, err
		}
		calls[i] = call{keys, []any{g.Term, g.TTL.Milliseconds(), ""}}
	}
	renewals := make([]lock.Renewal, len(grants))
	known := false
	var errs []error
	for i, answer := range runAll(ctx, p.client, renewScript, calls) {
		n, err := answer.Int()
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("renew lock %s: %w", grants[i].Key, explained(err)))
			continue
		case n == 1:
			renewals[i] = lock.Renewed
		default:
			renewals[i] = lock.Lost
		}
		known = true
	}
	if len(errs) == 0 || known {
		return renewals, first(errs)
	}
	return nil, first(errs)
}

// first is enough of many errors of one cause.
func first(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

// Extend implements [lock.Extender].
func (p *Provider) Extend(ctx context.Context, g lock.Grant, ttl time.Duration) error {
	keys, err := p.keysOf(g.Request)
	if err != nil {
		return err
	}
	text, err := factsOf(g.Request, ttl)
	if err != nil {
		return err
	}
	n, err := renewScript.Run(ctx, p.client, keys, g.Term, ttl.Milliseconds(), text).Int()
	return ended("extend", g, n, err)
}

// Release implements [lock.Provider].
func (p *Provider) Release(ctx context.Context, g lock.Grant) error { return p.release(ctx, g, 0) }

// ReleaseAfter implements [lock.Delayer]. Nobody is told when the time is over.
func (p *Provider) ReleaseAfter(ctx context.Context, g lock.Grant, after time.Duration) error {
	return p.release(ctx, g, max(after, time.Millisecond))
}

func (p *Provider) release(ctx context.Context, g lock.Grant, after time.Duration) error {
	keys, err := p.keysOf(g.Request)
	if err != nil {
		return err
	}
	text, err := factsOf(g.Request, after)
	if err != nil {
		return err
	}
	channel := ""
	if !p.opts.Quiet {
		channel = channelOf(g.Region) + keys[0]
	}
	n, err := releaseScript.Run(ctx, p.client, keys, g.Term, after.Milliseconds(), text, channel, keys[0]).Int()
	return ended("release", g, n, err)
}

// ended is the error of a script that changes a lease, and returns 0 for one that has ended.
func ended(verb string, g lock.Grant, n int, err error) error {
	if err == nil && n == 0 {
		err = lock.ErrLost
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s lock %s: %w", verb, g.Key, explained(err))
}

// channelOf begins the channels of a region, which are those of Spring's registry.
func channelOf(region string) string { return region + "-channel:" }

// notify is the Notify of [lock.Capabilities]. It tells of what Java releases, too, where its
// registry publishes that (PUB_SUB_LOCK). The client subscribes again when its connection is
// lost.
func (p *Provider) notify(ctx context.Context, region string, free func(key string)) error {
	sub := p.client.PSubscribe(ctx, globbed(channelOf(region))+"*")
	defer func() { _ = sub.Close() }()
	messages := sub.Channel()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m, open := <-messages:
			if !open {
				return errors.New("the subscription has ended")
			}
			if key, ok := strings.CutPrefix(m.Payload, region+":"); ok {
				free(key)
			}
		}
	}
}
