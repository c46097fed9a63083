package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

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
	answers, err := p.runAll(ctx, renewScript, calls)
	if err != nil {
		return nil, fmt.Errorf("renew %d locks: %w", len(grants), explained(err))
	}
	renewals := make([]lock.Renewal, len(grants))
	for i, answer := range answers {
		switch n, failed := answer.Int(); {
		case failed != nil: // One of many errors is enough.
			err = fmt.Errorf("renew lock %s: %w", grants[i].Key, explained(failed))
		case n == 1:
			renewals[i] = lock.Renewed
		default:
			renewals[i] = lock.Lost
		}
	}
	return renewals, err
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
	answer, err := p.run(ctx, renewScript, keys, g.Term, ttl.Milliseconds(), text)
	return ended("extend", g, answer, err)
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
	answer, err := p.run(ctx, releaseScript, keys, g.Term, after.Milliseconds(), text, channel, keys[0], uuid.NewString())
	if answer == untold {
		p.untold.Do(func() {
			p.opts.Logger.Warn("Releases are not published to waiting processes: the user lacks the right; "+publishAdvice, "channel", channel)
		})
	}
	return ended("release", g, answer, err)
}

// ended is the error of a script that changes a lease, and returns 0 for one that has ended.
func ended(verb string, g lock.Grant, answer any, err error) error {
	if err == nil && answer == int64(0) {
		err = lock.ErrLost
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s lock %s: %w", verb, g.Key, explained(err))
}

// untold is the answer to a release whose message was not allowed.
const untold = int64(2)

const publishAdvice = "grant it the channels &REGION-channel:* by ACL SETUSER, or set notify: false"

// channelOf begins the channels of a region, which are those of Spring's registry.
func channelOf(region string) string { return region + "-channel:" }

// silence is after which time without a message the server is asked whether it is there.
const silence = 5 * time.Second

// notify is the Notify of [lock.Capabilities]. It tells of what Java releases, too, where its
// registry publishes that (PUB_SUB_LOCK).
func (p *Provider) notify(ctx context.Context, region string, free func(key string)) error {
	sub := p.client.PSubscribe(ctx, globbed(channelOf(region))+"*")
	stop := context.AfterFunc(ctx, func() { _ = sub.Close() }) // The client does not notice the end of ctx.
	defer func() {
		if stop() {
			_ = sub.Close()
		}
	}()
	for asked := false; ; {
		message, err := sub.ReceiveTimeout(ctx, silence)
		slow, is := errors.AsType[net.Error](err)
		if asked = is && slow.Timeout() && !asked && ctx.Err() == nil; asked {
			err = sub.Ping(ctx)
		}
		if err != nil {
			return fmt.Errorf("the subscription has ended: %w", cmp.Or(context.Cause(ctx), explained(err)))
		}
		if m, ok := message.(*redis.Message); ok {
			if key, ok := strings.CutPrefix(m.Payload, region+":"); ok && key != "" {
				free(key)
			}
		}
	}
}
