package redislock

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
)

const (
	// foreignNode is the name of a holder that is no client of ours.
	foreignNode = "(another kind of client)"
	// foreignPredicate stands for what it does.
	foreignPredicate = "unknown"
	// scanned is how many keys a step looks at.
	scanned = 1000
	// shared and delayed are values that name no holder: of several, and of one that had
	// released its lock for later by a former version.
	shared, delayed = "shared", "-"
)

// Find implements [lock.Finder]. Without a key it looks at all keys of the servers. A lock
// that has expired is not there any more.
func (p *Provider) Find(ctx context.Context, q lock.Query) ([]lock.Held, error) {
	names, err := awaited(ctx, p, func() ([]name, error) { return p.names(ctx, q) })
	if err != nil {
		return nil, fmt.Errorf("find locks: %w", explained(err))
	}
	var found []lock.Held
	ours := map[string]bool{shared: true, delayed: true} // and those of us who have a legacy key
	for some := range slices.Chunk(names, scanned) {
		answers, err := p.runAll(ctx, findScript, fn.Each(some, func(n name) call { return call{keys: n.keys} }))
		if err != nil {
			return nil, fmt.Errorf("find locks: %w", explained(err))
		}
		for i, answer := range answers {
			values, err := answer.StringSlice()
			if err != nil {
				return nil, fmt.Errorf("find lock %s: %w", some[i].key, explained(err))
			}
			for at := 2; at < len(values); at += 2 {
				h := heldOf(some[i], q.Region, values[0], values[at])
				if some[i].older && ours[h.Term] {
					continue
				}
				ours[h.Term] = ours[h.Term] || !some[i].older
				if h.Compare(q.After) > 0 && (q.Node == "" || q.Node == h.Node) && h.Age >= q.OlderThan && !q.Expired {
					found = append(found, h)
				}
			}
		}
	}
	slices.SortFunc(found, lock.Held.Compare)
	return found[:min(len(found), q.Limit)], nil
}

// name is a lock that may be there.
type name struct {
	key  string
	keys []string
	// descriptor is that of a holder which says nothing of itself.
	descriptor string
	// older says that it is the key of an older system.
	older bool
}

// older is the key of an older system.
func older(key, descriptor string) name {
	return name{key: key, keys: []string{key, key, key}, descriptor: descriptor, older: true}
}

// names returns the locks that are looked at.
func (p *Provider) names(ctx context.Context, q lock.Query) ([]name, error) {
	if q.Key != "" {
		keys, err := p.keysOf(lock.Request{Region: q.Region, Key: q.Key})
		all := []name{{key: q.Key, keys: keys, descriptor: foreignDescriptor(q.Key)}}
		for _, old := range p.legacies {
			if key := old.keyOf(q.Key); key != "" {
				_, resources, _ := strings.Cut(q.Key, ":")
				all = append(all, older(key, old.describes(resources)))
			}
		}
		return all, err
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
			all = append(all, name{key: short, keys: keys, descriptor: foreignDescriptor(short)})
		}
	}
	for _, old := range p.legacies {
		theirs, err := p.scan(ctx, old.glob)
		if err != nil {
			return nil, err
		}
		for _, key := range theirs {
			if d := old.descriptor(key); d != "" {
				all = append(all, older(key, d))
			}
		}
	}
	return all, nil
}

// foreignDescriptor describes a lock by its key, SUBJECT:RESOURCE:…, alone.
func foreignDescriptor(key string) string {
	parts := strings.Split(key, ":")
	for i, part := range parts {
		if escape(unescape(part)) != part { // It was not written by us.
			parts[i] = escape(part)
		}
	}
	return "lock:exclusive:" + parts[0] + ":" + foreignPredicate + ":" + strings.Join(parts[1:], ":")
}

// scan returns the keys that match, of all masters, once.
func (p *Provider) scan(ctx context.Context, glob string) ([]string, error) {
	var mu sync.Mutex
	var all []string
	scan := func(ctx context.Context, c redis.Cmdable) error {
		keys := c.Scan(ctx, 0, glob, scanned).Iterator()
		for keys.Next(ctx) {
			mu.Lock()
			all = append(all, keys.Val())
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
	return fn.Distinct(all), err
}

// heldOf reads what the script says of a holder: EXPIRES MODE TERM FENCE FACTS, at that time in
// microseconds.
func heldOf(n name, region, now, text string) lock.Held {
	parts := append(strings.SplitN(text, " ", 3), "", "")
	l := leaseOf(parts[2])
	at, _ := strconv.ParseInt(now, 10, 64)
	expires, _ := strconv.ParseInt(parts[0], 10, 64)
	h := lock.Held{Row: n.keys[0], Left: time.Duration(expires-at/1000) * time.Millisecond, Mark: parts[0]}
	h.Term, h.Fence = l.term, l.fence
	h.Request = lock.Request{
		Key: n.key, Region: region, Name: n.key, TTL: time.Duration(l.TTL) * time.Millisecond, Mode: lock.Mode(parts[1]),
		Node: l.Node, Descriptor: l.Descriptor, Metadata: string(l.Metadata),
	}
	if l.foreign {
		h.Node, h.Descriptor = foreignNode, n.descriptor
		if expires < 0 {
			h.Left = lock.Endless
		}
		return h
	}
	h.Age = time.Duration(max(at-l.fence, 0)) * time.Microsecond
	h.Left = min(h.Left, h.TTL)
	return h
}
