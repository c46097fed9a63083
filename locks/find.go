package locks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// Filter says which locks [Manager.Find] returns. Zero values are for all.
type Filter struct {
	Subject, Predicate string
	Mode               Mode
	// Key is that of one lock, as of [Descriptor.Key].
	Key string
	// Resources are those that a lock must have, at any position. Below are the first of its
	// resources: fs-1 finds the lock with that resource and all locks below it.
	Resources, Below []string
	// Node is the holder's readable name.
	Node string
	// OlderThan is the least time since the acquisition.
	OlderThan time.Duration
	// Expired asks for locks whose lease has ended, and that no one has taken since.
	Expired bool
	// Limit is the most that is returned; 0 means 100. Of more locks it is not said which.
	Limit int
}

// Found is a lock as it stands. One that several hold is found once for each holder.
type Found struct {
	// Lock has the TTL in force, and the metadata.
	Lock  Descriptor
	Term  string
	Fence int64
	Node  string
	// Age is the time since the acquisition, and Left that until the lease is over if it is
	// not renewed: less than 0 when it is over, [Endless] for one that does not end by itself.
	Age, Left time.Duration
	// Waiting is how many stand in line for the lock.
	Waiting int
	// Mark changes with each renewal; [Manager.Steal] compares it.
	Mark string
}

// Endless is the [Found.Left] of a lock that another kind of client keeps without an end.
const Endless = lock.Endless

// findPage is how many locks are read at once, at least.
const findPage = 1000

// findTimeout limits the look at the holders of one lock.
const findTimeout = 10 * time.Second

// Find returns the locks of the manager's region that are held, by any process, sorted by
// what is locked, and those who share a lock by their age. The error is [ErrUnsupported] where the provider cannot list its locks,
// and a [*DescriptorError] for a mode that there is not. A subject or predicate that the
// manager does not know may be another program's.
func (m *Manager) Find(ctx context.Context, f Filter) ([]Found, error) {
	if m.can.Finder == nil {
		return nil, fmt.Errorf("find locks: %w", ErrUnsupported)
	}
	if f.Mode != "" && !slices.Contains(modes, f.Mode) {
		return nil, unknownMode("mode", f.Mode)
	}
	if f.Limit <= 0 {
		f.Limit = 100
	}
	q := lock.Query{
		Region: m.opts.Region, Key: f.Key, Parts: f.parts(), Node: f.Node,
		OlderThan: f.OlderThan, Expired: f.Expired, Limit: max(findPage, f.Limit),
	}
	var found []Found
	for {
		page, err := m.can.Finder.Find(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, held := range page {
			if l, ok := foundOf(held); ok && f.matches(l) {
				found = append(found, l)
			}
			if len(found) == f.Limit {
				break
			}
		}
		if len(found) == f.Limit || len(page) < q.Limit {
			slices.SortFunc(found, func(a, b Found) int {
				return cmp.Or(strings.Compare(a.Lock.Key(), b.Lock.Key()), cmp.Compare(a.Fence, b.Fence))
			})
			return found, nil
		}
		q.After = page[len(page)-1]
	}
}

// parts are what the text of a lock must have that matches.
func (f Filter) parts() []string {
	var parts []string
	for _, part := range append([]string{string(f.Mode), f.Subject, f.Predicate}, f.Resources...) {
		if part != "" {
			parts = append(parts, escaper.Replace(part))
		}
	}
	if len(f.Below) > 0 {
		parts = append(parts, join(slices.Clone(f.Below)))
	}
	return parts
}

func (f Filter) matches(l Found) bool {
	is := func(wanted, text string) bool { return wanted == "" || wanted == text }
	d := l.Lock
	return is(f.Subject, d.Subject) && is(f.Predicate, d.Predicate) && is(string(f.Mode), string(d.Mode)) && is(f.Node, l.Node) &&
		!slices.ContainsFunc(f.Resources, func(r string) bool { return !slices.Contains(d.Resources, r) }) &&
		len(d.Resources) >= len(f.Below) && slices.Equal(d.Resources[:len(f.Below)], f.Below)
}

// foundOf reads a lock. It reports false for one that is no general lock.
func foundOf(h lock.Held) (Found, bool) {
	d, err := split(h.Descriptor) // A holder of another version may have what this one refuses.
	if err != nil {
		return Found{}, false
	}
	d.TTL = h.TTL
	if h.Metadata != "" && json.Unmarshal([]byte(h.Metadata), &d.Metadata) != nil {
		d.Metadata = nil // It is for people; a row that was changed by hand must not hide the lock.
	}
	return Found{d, h.Term, h.Fence, h.Node, h.Age, h.Left, h.Waiting, h.Mark}, true
}
