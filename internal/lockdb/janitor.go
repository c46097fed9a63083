package lockdb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/wait"
)

// Retention says how long each history is kept. Every duration must be positive.
type Retention struct {
	// Events are kept this long, and longer while a sink has not stored them:
	// one of Sinks, one of another node that was seen within Nodes, or one that
	// within Events a relay has fed or claimed, or a node had that then stopped.
	// Of every other sink the offsets are removed, and only then the events.
	Events time.Duration
	// Polls, Dead, Audit and Nodes bound the tables of these names, but for the records
	// of poison rows that polls may meet again: Dead bounds their values. Polls bounds
	// the sweeps that have ended, too; but the last of each stream and kind stays,
	// so that it is known when it was.
	Polls, Dead, Audit, Nodes time.Duration
	// StaleLocks is how long a lock of ours may have been expired before its
	// rows are removed. Rows of others are never touched.
	StaleLocks time.Duration
	// Sinks are those of this node.
	Sinks []string
}

// cleanBatch bounds one deletion, so that it never holds locks for long. The statements have
// it as their LIMIT.
const cleanBatch = 5000

// Clean removes stale rows, a bounded number of rows at a time. It runs
// under a lock of its own, so that one node does it, but two at once do no harm.
// It returns the number of rows removed. A table from which nothing may be
// deleted, or of which another client has locked a row, does not keep it from the
// other tables.
func (db *DB) Clean(ctx context.Context, r Retention) (int64, error) {
	return (&cleaner{node: db, Retention: r}).run(ctx)
}

// cleaner is one run of [DB.Clean].
type cleaner struct {
	node *DB
	Retention
	rows int64   // removed so far
	errs []error // of the steps so far, nil too
}

func (c *cleaner) run(ctx context.Context) (int64, error) {
	for _, task := range c.chores() {
		if n, err := c.do(ctx, task); !c.add(ctx, n, err) {
			return c.rows, errors.Join(c.errs...)
		}
	}
	c.cleanLog(ctx)
	return c.rows, errors.Join(c.errs...)
}

// add notes what one step has removed, and reports whether another may do
// better: it may after whatever the server has answered.
func (c *cleaner) add(ctx context.Context, n int64, err error) (goOn bool) {
	c.rows += n
	c.errs = append(c.errs, err)
	return ctx.Err() == nil && !sqldb.Unreachable(err)
}

// do removes all that is stale in one table.
func (c *cleaner) do(ctx context.Context, task chore) (int64, error) {
	var total int64
	for {
		n, err := c.node.db.Exec(ctx, "clean "+task.table, task.text, task.age.Seconds())
		if err != nil {
			return total, err
		}
		total += n
		c.node.metrics.cleaned.WithLabelValues(task.table).Add(float64(n))
		if n < cleanBatch {
			return total, nil
		}
	}
}

type chore struct {
	table, text string
	age         time.Duration
}

func (c *cleaner) chores() []chore {
	texts := c.node.sql.SQL().Janitor
	return []chore{
		{"obs_poll", texts.Polls, c.Polls},
		{"obs_dead", texts.Dead, c.Dead},
		{"obs_dead", texts.DeadValues, c.Dead},
		{"obs_audit", texts.Audit, c.Audit},
		{"obs_sweep", texts.Sweeps, c.Polls},
		{"obs_node", texts.Nodes, c.Nodes},
		{"obs_hold", texts.Holds, c.StaleLocks},
		{"int_lock", texts.Locks, c.StaleLocks},
		{"obs_lock", texts.Notes, c.StaleLocks},
		{"obs_wait", texts.Waits, c.StaleLocks},
		{"obs_lock_failure", texts.Failures, failuresKept},
	}
}

// UnderLock runs f while this node holds the lock of the janitor; it returns
// without an error when another node has it.
type UnderLock func(ctx context.Context, f func(ctx context.Context) error) error

// longestRun is the default of [Janitor].Limit.
const longestRun = 10 * time.Minute

// failuresKept is how long the failures of a lock are remembered after the last one.
const failuresKept = 7 * 24 * time.Hour

// Janitor runs [DB.Clean] now and then.
type Janitor struct {
	DB        *DB
	UnderLock UnderLock
	Retention Retention
	// Every is the time between two runs on this node. Required.
	Every time.Duration
	// Limit bounds a run; the next run continues. The lease is no bound: it is
	// renewed while one connection of many is not answered any more. 0 means
	// 10 minutes.
	Limit time.Duration
	Log   *slog.Logger
}

// Run cleans until ctx ends.
func (j *Janitor) Run(ctx context.Context) {
	for wait.For(ctx, j.Every) {
		j.once(ctx)
	}
}

func (j *Janitor) once(ctx context.Context) {
	err := j.UnderLock(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, cmp.Or(j.Limit, longestRun))
		defer cancel()
		n, err := j.DB.Clean(ctx, j.Retention)
		if n > 0 {
			j.Log.Debug("Removed stale rows", "rows", n)
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		j.Log.Warn("Could not remove stale rows; the next run tries again", "err", err)
	}
}

// cleanLog removes the events that no sink needs any more; none while it is not known
// which sinks are in use.
func (c *cleaner) cleanLog(ctx context.Context) {
	used, fed, err := c.sinks(ctx)
	if err != nil {
		c.add(ctx, 0, err)
		return
	}
	if c.cleanOffsets(ctx, used, fed) {
		c.cleanEvents(ctx, used)
	}
}

// sinks returns the sinks that are in use, according to this node, to
// others, or by a relay's recent work, and all that have offsets.
func (c *cleaner) sinks(ctx context.Context) (used, fed map[string]bool, err error) {
	used, fed = fn.Set(c.Sinks), make(map[string]bool)
	nodes, err := c.node.Nodes().Nodes(ctx, c.Nodes)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range nodes {
		for _, sink := range n.Sinks {
			used[sink] = true
		}
	}
	err = c.node.db.Query(ctx, "look for the sinks in use", c.node.sql.SQL().Janitor.Sinks,
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
		c.node.metrics.cleaned.WithLabelValues("obs_sink_offset").Add(float64(n))
		if !c.add(ctx, n, err) {
			return false
		}
	}
	return true
}

// forgetSink removes the offsets of a sink, unless a relay has come to feed it:
// its offset would go back. With the row that a relay claims, and looks at when
// it acknowledges, locked, none can come between the second look and the removal.
func (c *cleaner) forgetSink(ctx context.Context, sink string) (n int64, err error) {
	err = c.node.db.InTx(ctx, "clean obs_sink_offset", func(tx *sql.Tx) error {
		texts := c.node.sql.SQL().Janitor
		if _, err := tx.ExecContext(ctx, texts.LockSink, sink); err != nil {
			return err
		}
		n, err = sqldb.Affected(tx.ExecContext(ctx, texts.ForgetSink, sink, c.Events.Seconds()))
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// cleanEvents removes old events that every sink in use has stored.
func (c *cleaner) cleanEvents(ctx context.Context, used map[string]bool) {
	offsets, err := c.node.events.StoredByAll(ctx, used)
	if err != nil {
		c.add(ctx, 0, err)
		return
	}
	for _, stream := range slices.Sorted(maps.Keys(offsets)) {
		if n, err := c.cleanStream(ctx, stream, offsets[stream]); !c.add(ctx, n, err) {
			return
		}
	}
}

// cleanStream removes the old events of a stream up to stored. It looks for the
// beginning of the stream once: while a transaction such as a backup may still see
// removed events, PostgreSQL reads over all of them on the way.
func (c *cleaner) cleanStream(ctx context.Context, stream string, stored int64) (int64, error) {
	var first sql.NullInt64
	err := c.node.db.Read.QueryRowContext(ctx, c.node.sql.SQL().Janitor.FirstEvent, stream).Scan(&first)
	if err != nil {
		return 0, fmt.Errorf("look for the first event of %s: %w", stream, err)
	}
	var total int64
	for from := first.Int64; first.Valid && from <= stored; from += cleanBatch {
		n, err := c.node.db.Exec(ctx, "clean obs_event", c.node.sql.SQL().Janitor.CleanEvents, stream, from, min(from+cleanBatch, stored+1), c.Events.Seconds())
		if err != nil {
			return total, err
		}
		total += n
		c.node.metrics.cleaned.WithLabelValues("obs_event").Add(float64(n))
		if n < cleanBatch {
			break
		}
	}
	return total, nil
}
