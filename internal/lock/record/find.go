package record

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// Find implements [lock.Finder]. It leaves the parts of the descriptor to its caller. Ages are by
// the clocks of the holders, and what is left of a lease is by what this process has seen.
func (p *Provider) Find(ctx context.Context, q lock.Query) ([]lock.Held, error) {
	records, err := p.read(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("find locks: %w", err)
	}
	var found []lock.Held
	for _, r := range records {
		r = p.seen.note(r)
		if r.Term == "" || q.Node != "" && q.Node != r.Node {
			continue
		}
		h := lock.Held{Grant: r.grant(), Row: r.Key, Age: max(0, time.Since(r.AcquiredAt)), Left: r.left(), Mark: r.Version}
		if h.Age >= q.OlderThan && (!q.Expired || h.Left <= 0) && h.Compare(q.After) > 0 {
			found = append(found, h)
		}
	}
	slices.SortFunc(found, lock.Held.Compare)
	return found[:min(len(found), q.Limit)], nil
}

// read returns the one record of the query's key, or all of its region.
func (p *Provider) read(ctx context.Context, q lock.Query) ([]Record, error) {
	if q.Key == "" {
		return p.opts.Records.List(ctx, q.Region)
	}
	r, err := p.get(ctx, q.Region, q.Key)
	return []Record{r}, err
}
