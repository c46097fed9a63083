package takeover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Measure strikes nodes and measures. A goal that is missed is a result, not an
// error.
func Measure(ctx context.Context, o Options) (Figures, error) {
	found := &found{Figures: Figures{TTL: o.TTL, ShortTTL: o.ShortTTL}}
	group, ctx := errgroup.WithContext(ctx)
	for _, seen := range []bool{true, false} {
		ttl := map[bool]time.Duration{true: o.TTL, false: o.ShortTTL}[seen]
		queue := make(chan Kind, most(o.Samples)*len(Kinds()))
		for _, kind := range o.queue(seen) {
			queue <- kind
		}
		close(queue)
		for number := range min(o.Lanes, len(queue)) {
			group.Go(func() error {
				if err := run(ctx, o, number, ttl, queue, found); err != nil {
					return fmt.Errorf("takeover at a TTL of %s: %w", ttl, err)
				}
				return nil
			})
		}
	}
	err := group.Wait()
	return found.Figures, err
}

// found gathers what all runs find.
type found struct {
	mu sync.Mutex
	Figures
}

// run works off the queue with one cluster.
func run(ctx context.Context, o Options, number int, ttl time.Duration, queue <-chan Kind, all *found) (err error) {
	ctx, cancel := context.WithCancel(ctx) // It kills what is left.
	defer cancel()
	n, err := openRun(ctx, o, number, ttl)
	defer func() { err = errors.Join(err, n.close(ctx)) }()
	if err != nil {
		return err
	}
	for kind := range queue {
		s, err := n.again(ctx, kind)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		n.testbed.Progress("takeover: %s: %s by %q", kind, s.Took.Round(time.Millisecond), s.Rule)
		all.mu.Lock()
		all.Samples = append(all.Samples, s)
		all.mu.Unlock()
	}
	return n.audit(ctx, all)
}

// again samples until the strike was in time; a few may come too late.
func (n *clusterRun) again(ctx context.Context, kind Kind) (s Sample, err error) {
	for range 5 {
		if s, err = n.sample(ctx, kind); !errors.Is(err, errOver) {
			return s, err
		}
		n.testbed.Progress("takeover: %s came too late, once more", kind)
	}
	return s, err
}

// audit counts what became of the rows.
func (n *clusterRun) audit(ctx context.Context, all *found) error {
	var events, keys int64
	if err := n.database.QueryRow(ctx, "SELECT count(*), count(DISTINCT subject) FROM obs_event WHERE stream = 'orders'").Scan(&events, &keys); err != nil {
		return fmt.Errorf("count the events: %w", err)
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.Rows += n.inserted
	all.Events += events
	all.Repeated += events - keys
	return nil
}
