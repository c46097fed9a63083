package redislock

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
)

// facts are what people want to know of a lease. ttl_ms comes first: the scripts read it.
type facts struct {
	TTL        int64           `json:"ttl_ms"`
	Node       string          `json:"node,omitempty"`
	Descriptor string          `json:"descriptor,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
}

func factsOf(r lock.Request, ttl time.Duration) (string, error) {
	text, err := json.Marshal(facts{ttl.Milliseconds(), r.Node, r.Descriptor, json.RawMessage(r.Metadata)})
	if err != nil {
		return "", fmt.Errorf("lock %s: its metadata are no JSON: %w", r.Key, err)
	}
	return string(text), nil
}

// Acquire implements [lock.Provider].
func (p *Provider) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	grants, err := p.AcquireAll(ctx, []lock.Request{r})
	if err != nil {
		return lock.Grant{}, err
	}
	return grants[0], nil
}

// AcquireAll implements [lock.Sets]. In a cluster the keys must have one tag. What was not
// answered is given back.
func (p *Provider) AcquireAll(ctx context.Context, requests []lock.Request) ([]lock.Grant, error) {
	if err := p.sameSlot(requests); err != nil {
		return nil, err
	}
	var keys []string
	each := 3
	if len(p.legacies) > 0 {
		each = 4
	}
	grants, args := make([]lock.Grant, len(requests)), []any{each}
	for i, r := range requests {
		own, lease, err := p.newLease(r)
		if err != nil {
			return nil, err
		}
		if len(own) == 4 && slices.Contains(keys, own[3]) {
			return nil, fmt.Errorf("lock %s: %w: another lock of the set has the legacy key %s, too", r.Key, lock.ErrUnsupported, own[3])
		}
		keys = append(keys, append(own, own[0])[:each]...)
		grants[i] = lock.Grant{Request: r, Term: lease[0].(string), Began: time.Now()}
		args = append(args, lease...)
	}
	answer, err := p.take(ctx, acquireScript, grants, keys, args...)
	if err != nil {
		return nil, fmt.Errorf("acquire lock %s: %w", requests[0].Key, explained(err))
	}
	return grants, granted(grants, answer)
}

// take runs a script that may take these locks, and gives them back if that is not known.
func (p *Provider) take(ctx context.Context, script *redis.Script, grants []lock.Grant, keys []string, args ...any) (any, error) {
	answer, err := awaited(ctx, p, func() (any, error) {
		answer, err := script.Run(ctx, p.client, keys, args...).Result()
		if err == nil && ctx.Err() != nil { // Nobody waits for it, and a release may have passed it.
			p.giveBack(ctx, grants)
			err = context.Cause(ctx)
		}
		return answer, err
	})
	if err != nil && isUnknown(err) {
		p.giveBack(ctx, grants)
	}
	return answer, err
}

// newLease returns the keys of a lock, and what the scripts are told of a new lease: its term,
// mode, TTL and facts.
func (p *Provider) newLease(r lock.Request) (keys []string, lease []any, err error) {
	if !r.Mode.Known() {
		return nil, nil, fmt.Errorf("acquire lock %s in mode %s: %w", r.Key, r.Mode, lock.ErrUnsupported)
	}
	if keys, err = p.keysOf(r); err != nil {
		return nil, nil, err
	}
	text, err := factsOf(r, r.TTL)
	return keys, []any{uuid.NewString(), string(cmp.Or(r.Mode, lock.Exclusive)), r.TTL.Milliseconds(), text}, err
}

// granted puts the answer of a script into the grants: the fence of each, and whether the lock
// was taken over.
func granted(grants []lock.Grant, answer any) error {
	r := grants[0].Request
	values, _ := answer.([]any)
	texts := fn.Each(values, func(a any) string { return fmt.Sprint(a) })
	switch {
	case len(texts) == 4 && texts[0] == "held":
		n, _ := strconv.Atoi(texts[1])
		left, _ := strconv.ParseInt(texts[3], 10, 64)
		l := leaseOf(texts[2])
		return &lock.HeldError{Key: grants[min(n, len(grants)-1)].Key, Node: l.Node, Left: time.Duration(max(left, 0)) * time.Millisecond}
	case len(texts) == 1 && texts[0] == "ended":
		return fmt.Errorf("steal lock %s: %w", r.Key, lock.ErrEnded)
	case len(texts) == 1 && texts[0] == "renewed":
		return fmt.Errorf("steal lock %s: %w", r.Key, lock.ErrRenewed)
	case len(texts) != 2*len(grants):
		return fmt.Errorf("acquire lock %s: Redis has answered %d values for %d locks", r.Key, len(texts), len(grants))
	}
	for i := range grants {
		fence, err := strconv.ParseInt(texts[2*i], 10, 64)
		if err != nil {
			return err
		}
		grants[i].Fence, grants[i].Recovered = fence, texts[2*i+1] == "1"
	}
	return nil
}

// lease is what the value of a lock says.
type lease struct {
	facts
	term  string
	fence int64
	// foreign says that another kind of client has the lock.
	foreign bool
}

// leaseOf reads TERM FENCE FACTS.
func leaseOf(value string) lease {
	parts := strings.SplitN(value, " ", 3)
	l := lease{term: parts[0]}
	if len(parts) < 3 || json.Unmarshal([]byte(parts[2]), &l.facts) != nil {
		return lease{term: value, foreign: true}
	}
	fence, err := strconv.ParseInt(parts[1], 10, 64)
	l.fence, l.foreign = fence, err != nil
	return l
}

// Steal implements [lock.Stealer]. It keeps no records.
func (p *Provider) Steal(ctx context.Context, r lock.Request, seen lock.Held, _ lock.By) (lock.Grant, error) {
	keys, lease, err := p.newLease(r)
	if err != nil {
		return lock.Grant{}, err
	}
	g := lock.Grant{Request: r, Term: lease[0].(string), Began: time.Now()}
	grants := []lock.Grant{g}
	answer, err := p.take(ctx, stealScript, grants, keys, append([]any{seen.Term, seen.Mark}, lease...)...)
	if err != nil {
		return lock.Grant{}, fmt.Errorf("steal lock %s: %w", r.Key, explained(err))
	}
	return grants[0], granted(grants, answer)
}
