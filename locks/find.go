package locks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// Filter says which locks [Manager.Find] returns. Zero values are for all.
type Filter struct {
	Subject, Predicate string
	Mode               Mode
	// Resources are those that a lock must have, at any position.
	Resources []string
	// Node is the holder's readable name.
	Node string
	// OlderThan is the least time since the acquisition.
	OlderThan time.Duration
	// Expired asks for locks whose lease is over, and that nobody has taken since.
	Expired bool
	// Limit is the most that is returned; 0 means 100.
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
	// not renewed: less than 0 when it is over.
	Age, Left time.Duration
	// Waiting is how many stand in line for the lock.
	Waiting int
	// Mark changes with each renewal; [Manager.Steal] compares it.
	Mark string
}

// findPage is how many locks are read at once.
const findPage = 1000

// Find returns the locks of the manager's region that are held, by any process, sorted by
// what is locked. The error is [ErrUnsupported] where the provider cannot list its locks,
// and a [*DescriptorError] for a mode that there is not. A subject or predicate that the
// manager does not know may be another program's.
func (m *Manager) Find(ctx context.Context, f Filter) ([]Found, error) {
	finder, ok := m.opts.Provider.(lock.Finder)
	if !ok {
		return nil, fmt.Errorf("find locks: %w", ErrUnsupported)
	}
	if f.Mode != "" && !slices.Contains(modes, f.Mode) {
		return nil, unknownMode("mode", f.Mode)
	}
	if f.Limit <= 0 {
		f.Limit = 100
	}
	q := lock.Query{Region: m.opts.Region, Parts: f.parts(), Node: f.Node, Limit: findPage}
	var found []Found
	for {
		page, err := finder.Find(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, held := range page {
			if l, ok := foundOf(held); ok && f.matches(l) {
				found = append(found, l)
			}
			if len(found) == f.Limit {
				return found, nil
			}
		}
		if len(page) < findPage {
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
	return parts
}

func (f Filter) matches(l Found) bool {
	is := func(wanted, text string) bool { return wanted == "" || wanted == text }
	d := l.Lock
	return is(f.Subject, d.Subject) && is(f.Predicate, d.Predicate) && is(string(f.Mode), string(d.Mode)) && is(f.Node, l.Node) &&
		!slices.ContainsFunc(f.Resources, func(r string) bool { return !slices.Contains(d.Resources, r) }) &&
		l.Age >= f.OlderThan && (!f.Expired || l.Left <= 0)
}

// foundOf reads a lock. It reports false for one that is no general lock.
func foundOf(h lock.Held) (Found, bool) {
	d, err := Parse(h.Descriptor)
	if err != nil {
		return Found{}, false
	}
	d.TTL = h.TTL
	if h.Metadata != "" && json.Unmarshal([]byte(h.Metadata), &d.Metadata) != nil {
		d.Metadata = nil // It is for people; a row that was changed by hand must not hide the lock.
	}
	return Found{d, h.Term, h.Fence, h.Node, h.Age, h.Left, h.Waiting, h.Mark}, true
}
