package lockdb

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
)

// cleanLog removes the events that no sink needs any more; none while it is not known
// which sinks are in use.
func (c *cleaner) cleanLog(ctx context.Context) {
	used, fed, err := c.sinks(ctx)
	if err != nil {
		c.done.add(ctx, 0, err)
		return
	}
	if c.cleanOffsets(ctx, used, fed) {
		c.cleanEvents(ctx, used)
	}
}

// sinks returns the sinks that are in use, according to this node, to
// others, or by a relay's recent work, and all that have offsets.
func (c *cleaner) sinks(ctx context.Context) (used, fed map[string]bool, err error) {
	used, fed = map[string]bool{}, map[string]bool{}
	for _, sink := range c.Sinks {
		used[sink] = true
	}
	nodes, err := c.nodes.Nodes(ctx, c.Nodes)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range nodes {
		for _, sink := range n.Sinks {
			used[sink] = true
		}
	}
	err = c.db.Query(ctx, "look for the sinks in use", c.sql.SQL().Janitor.Sinks,
		func(scan func(...any) error) error {
			var sink string
			var recently bool
			err := scan(&sink, &recently)
			fed[sink] = true
			if recently {
				used[sink] = true
			}
			return err
		}, c.Events.Seconds())
	return used, fed, err
}

// cleanOffsets removes the offsets of sinks that no node uses any more, and that
// no relay has fed for that long. It reports false when nothing else can be done
// either. Offsets that it could not remove still count; see CleanEvents.
func (c *cleaner) cleanOffsets(ctx context.Context, used, fed map[string]bool) (goOn bool) {
	for _, sink := range slices.Sorted(maps.Keys(fed)) {
		if used[sink] {
			continue
		}
		n, err := c.forgetSink(ctx, sink)
		c.cleaned.WithLabelValues("obs_sink_offset").Add(float64(n))
		if !c.done.add(ctx, n, err) {
			return false
		}
	}
	return true
}

// forgetSink removes the offsets of a sink, unless a relay has come to feed it:
// its offset would go back. With the row that a relay claims, and looks at when
// it acknowledges, locked, none can come between the second look and the removal.
func (c *cleaner) forgetSink(ctx context.Context, sink string) (n int64, err error) {
	err = c.db.InTx(ctx, "clean obs_sink_offset", func(tx *sql.Tx) error {
		texts := c.sql.SQL().Janitor
		if _, err := tx.ExecContext(ctx, texts.LockSink, sink); err != nil {
			return err
		}
		n, err = affected(tx.ExecContext(ctx, texts.ForgetSink, sink, c.Events.Seconds()))
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// cleanEvents removes old events that every sink in use has stored.
func (c *cleaner) cleanEvents(ctx context.Context, used map[string]bool) {
	offsets, err := c.log.StoredByAll(ctx, used)
	if err != nil {
		c.done.add(ctx, 0, err)
		return
	}
	for _, stream := range slices.Sorted(maps.Keys(offsets)) {
		if n, err := c.cleanStream(ctx, stream, offsets[stream]); !c.done.add(ctx, n, err) {
			return
		}
	}
}

// cleanStream removes the old events of a stream up to stored. It looks for the
// beginning of the stream once: while a transaction such as a backup may still see
// removed events, PostgreSQL reads over all of them on the way.
func (c *cleaner) cleanStream(ctx context.Context, stream string, stored int64) (int64, error) {
	var first sql.NullInt64
	err := c.db.Read.QueryRowContext(ctx, c.sql.SQL().Janitor.FirstEvent, stream).Scan(&first)
	if err != nil {
		return 0, fmt.Errorf("look for the first event of %s: %w", stream, err)
	}
	var total int64
	for from := first.Int64; first.Valid && from <= stored; from += cleanBatch {
		n, err := c.db.Exec(ctx, "clean obs_event", c.sql.SQL().Janitor.CleanEvents, stream, from, min(from+cleanBatch, stored+1), c.Events.Seconds())
		if err != nil {
			return total, err
		}
		total += n
		c.cleaned.WithLabelValues("obs_event").Add(float64(n))
		if n < cleanBatch {
			break
		}
	}
	return total, nil
}
