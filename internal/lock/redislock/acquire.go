package redislock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

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
	grants, all, args := make([]lock.Grant, len(requests)), make([][]string, len(requests)), []any{0}
	stride := 0 // the most keys that a lock has
	for i, r := range requests {
		keys, lease, err := p.newLease(r)
		if err != nil {
			return nil, err
		}
		all[i], stride = keys, max(stride, len(keys))
		grants[i] = lock.Grant{Request: r, Term: lease[0].(string), Began: time.Now()}
		args = append(args, lease...)
	}
	args[0] = stride
	var keys []string
	for _, own := range all {
		keys = append(append(keys, own...), make([]string, stride-len(own))...)
	}
	answer, err := acquireScript.Run(ctx, p.client, keys, args...).Slice()
	if err != nil {
		if isUnknown(err) {
			p.giveBack(ctx, grants)
		}
		return nil, fmt.Errorf("acquire lock %s: %w", requests[0].Key, explained(err))
	}
	return grants, granted(grants, answer)
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
	return keys, []any{uuid.NewString(), string(modeOf(r.Mode)), r.TTL.Milliseconds(), text}, err
}

func modeOf(m lock.Mode) lock.Mode {
	if m.Alone() {
		return lock.Exclusive
	}
	return m
}

// granted puts the answer of a script into the grants: the fence of each, and whether the lock
// was taken over.
func granted(grants []lock.Grant, answer []any) error {
	r := grants[0].Request
	texts := make([]string, len(answer))
	for i, a := range answer {
		texts[i] = fmt.Sprint(a)
	}
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
	var errs []error
	for i := range grants {
		var err error
		grants[i].Fence, err = strconv.ParseInt(texts[2*i], 10, 64)
		grants[i].Recovered = texts[2*i+1] == "1"
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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
	l := lease{term: parts[0], foreign: true}
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
	answer, err := stealScript.Run(ctx, p.client, keys, append([]any{seen.Term, seen.Mark}, lease...)...).Slice()
	if err != nil {
		if isUnknown(err) {
			p.giveBack(ctx, []lock.Grant{g})
		}
		return lock.Grant{}, fmt.Errorf("steal lock %s: %w", r.Key, explained(err))
	}
	grants := []lock.Grant{g}
	return grants[0], granted(grants, answer)
}
