package redislock

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/observerd/observerd/internal/lock"
)

const (
	// foreignNode is the name of a holder that is no client of ours.
	foreignNode = "(another kind of client)"
	// foreignPredicate stands for what it does.
	foreignPredicate = "unknown"
	// scanned is how many keys a step of SCAN looks at.
	scanned = 1000
)

// Find implements [lock.Finder]. Without a key it looks at all keys of the servers. A lock
// that has expired is not there any more.
func (p *Provider) Find(ctx context.Context, q lock.Query) ([]lock.Held, error) {
	names, err := p.names(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("find locks: %w", explained(err))
	}
	calls := make([]call, len(names))
	for i, n := range names {
		calls[i] = call{keys: n.keys}
	}
	var found []lock.Held
	for i, answer := range runAll(ctx, p.client, findScript, calls) {
		values, err := answer.StringSlice()
		if err != nil {
			return nil, fmt.Errorf("find lock %s: %w", names[i].key, explained(err))
		}
		for at := 2; at < len(values); at += 2 {
			h := heldOf(names[i], q.Region, values[0], values[at])
			later := h.Row > q.After.Row || h.Row == q.After.Row && h.Term > q.After.Term
			if later && (q.Node == "" || q.Node == h.Node) && h.Age >= q.OlderThan && !q.Expired {
				found = append(found, h)
			}
		}
	}
	slices.SortFunc(found, func(a, b lock.Held) int {
		return cmp.Or(strings.Compare(a.Row, b.Row), strings.Compare(a.Term, b.Term))
	})
	return found[:min(len(found), q.Limit)], nil
}

// name is a lock that may be there.
type name struct {
	key  string
	keys []string
	// descriptor is that of a holder which says nothing of itself.
	descriptor string
}

// names returns the locks that are looked at.
func (p *Provider) names(ctx context.Context, q lock.Query) ([]name, error) {
	if q.Key != "" {
		keys, err := p.keysOf(lock.Request{Region: q.Region, Key: q.Key})
		return append(p.older(q.Key), name{q.Key, keys, foreignDescriptor(q.Key)}), err
	}
	prefix := q.Region + ":"
	var all []name
	own, err := p.scan(ctx, globbed(prefix)+"*")
	if err != nil {
		return nil, err
	}
	for _, key := range own {
		short := strings.TrimPrefix(key, prefix)
		if keys, err := p.keysOf(lock.Request{Region: q.Region, Key: short}); err == nil {
			all = append(all, name{short, keys, foreignDescriptor(short)})
		}
	}
	for _, old := range p.legacies {
		theirs, err := p.scan(ctx, old.glob)
		if err != nil {
			return nil, err
		}
		for _, key := range theirs {
			if d := old.descriptor(key); d != "" {
				all = append(all, name{keyOf(d), []string{key, "", ""}, d})
			}
		}
	}
	return all, nil
}

// older returns the keys of older systems for a lock.
func (p *Provider) older(key string) (all []name) {
	subject, rest, _ := strings.Cut(key, ":")
	for _, old := range p.legacies {
		d := strings.Join([]string{"lock:exclusive", subject, escape(old.predicate), rest}, ":")
		theirs, err := old.key(resourcesOf(d))
		if err == nil && unescape(subject) == old.subject {
			all = append(all, name{key, []string{theirs, "", ""}, d})
		}
	}
	return all
}

// keyOf returns the key of a lock by its descriptor.
func keyOf(descriptor string) string {
	parts := strings.SplitN(descriptor, ":", 5)
	return parts[2] + ":" + parts[4]
}

// foreignDescriptor describes a lock by its key, SUBJECT:RESOURCE:…, alone.
func foreignDescriptor(key string) string {
	subject, rest, _ := strings.Cut(key, ":")
	return strings.Join([]string{"lock:exclusive", subject, foreignPredicate, rest}, ":")
}

// scan returns the keys that match, of all masters, once.
func (p *Provider) scan(ctx context.Context, glob string) ([]string, error) {
	var mu sync.Mutex
	all := make(map[string]bool)
	scan := func(ctx context.Context, c redis.Cmdable) error {
		keys := c.Scan(ctx, 0, glob, scanned).Iterator()
		for keys.Next(ctx) {
			mu.Lock()
			all[keys.Val()] = true
			mu.Unlock()
		}
		return keys.Err()
	}
	var err error
	if cluster, ok := p.client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return scan(ctx, c) })
	} else {
		err = scan(ctx, p.client)
	}
	keys := make([]string, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	return keys, err
}

// heldOf reads what the script says of a holder: EXPIRES MODE TERM FENCE FACTS, at that time in
// microseconds.
func heldOf(n name, region, now, text string) lock.Held {
	parts := append(strings.SplitN(text, " ", 3), "", "")
	l := leaseOf(parts[2])
	at, _ := strconv.ParseInt(now, 10, 64)
	expires, _ := strconv.ParseInt(parts[0], 10, 64)
	h := lock.Held{Row: n.keys[0], Left: time.Duration(expires-at/1000) * time.Millisecond, Mark: parts[0]}
	if expires < 0 { // It has no end.
		h.Left = math.MaxInt64
	}
	h.Term, h.Fence = l.term, l.fence
	h.Request = lock.Request{
		Key: n.key, Region: region, Name: n.key, TTL: time.Duration(l.TTL) * time.Millisecond, Mode: lock.Mode(parts[1]),
		Node: l.Node, Descriptor: l.Descriptor, Metadata: string(l.Metadata),
	}
	if l.foreign {
		h.Node, h.Descriptor = foreignNode, n.descriptor
		return h
	}
	h.Age = time.Duration(max(at-l.fence, 0)) * time.Microsecond
	h.Left = min(h.Left, h.TTL)
	return h
}
