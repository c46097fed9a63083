package lockdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/lockdb/eventlog"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
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

// cleanBatch bounds one deletion, so that it never holds locks for long.
const cleanBatch = 5000

// Clean removes stale rows, a bounded number of rows at a time. It runs
// under a lock of its own, so that one node does it, but two at once do no harm.
// It returns the number of rows removed. A table from which nothing may be
// deleted, or of which another client has locked a row, does not keep it from the
// other tables.
func (db *DB) Clean(ctx context.Context, r Retention) (int64, error) {
	return (&cleaner{db: db.db, nodes: db.Nodes(), log: db.Log(), cleaned: db.metrics.cleaned, Retention: r}).run(ctx)
}

// cleaner is one run of [DB.Clean].
type cleaner struct {
	db      *sqldb.DB
	nodes   *Nodes
	log     *eventlog.Log
	cleaned *prometheus.CounterVec
	Retention
	done haul
}

func (c *cleaner) run(ctx context.Context) (int64, error) {
	for _, task := range c.chores() {
		if n, err := c.do(ctx, task); !c.done.add(ctx, n, err) {
			return c.done.result()
		}
	}
	c.cleanLog(ctx)
	return c.done.result()
}

// haul is the result of a clean-up so far.
type haul struct {
	rows int64
	errs []error
}

// add notes what one step of it has removed, and reports whether another may do
// better: it may after whatever the server has answered.
func (h *haul) add(ctx context.Context, n int64, err error) (goOn bool) {
	h.rows += n
	h.errs = append(h.errs, err)
	return ctx.Err() == nil && !sqldb.Unreachable(err)
}

func (h *haul) result() (int64, error) { return h.rows, errors.Join(h.errs...) }

// do removes all that is stale in one table.
func (c *cleaner) do(ctx context.Context, task chore) (int64, error) {
	var total int64
	for {
		n, err := c.db.Exec(ctx, "clean "+task.table, task.text, task.args...)
		if err != nil {
			return total, err
		}
		total += n
		c.cleaned.WithLabelValues(task.table).Add(float64(n))
		if n < cleanBatch {
			return total, nil
		}
	}
}

type chore struct {
	table, text string
	args        []any
}

func (c *cleaner) chores() []chore {
	aged := func(table, column string, age time.Duration) chore {
		return chore{table, fmt.Sprintf(`DELETE FROM %[1]s WHERE id IN (SELECT id FROM %[1]s WHERE %[2]s < {past $1} ORDER BY %[2]s LIMIT %[3]d)`,
			table, column, cleanBatch), []any{age.Seconds()}}
	}
	return []chore{
		aged("obs_poll", "finished_at", c.Polls),
		{"obs_dead", deleteDeadSQL, []any{c.Dead.Seconds()}},
		{"obs_dead", emptyDeadSQL, []any{c.Dead.Seconds()}},
		aged("obs_audit", "at", c.Audit),
		{"obs_sweep", `
			DELETE FROM obs_sweep
			 WHERE state <> 'running' AND updated_at < {ago $1}
			   AND EXISTS (SELECT 1 FROM obs_sweep later
			                WHERE later.stream = obs_sweep.stream AND later.kind = obs_sweep.kind AND later.id > obs_sweep.id)`,
			[]any{c.Polls.Seconds()}},
		{"obs_node", `DELETE FROM obs_node WHERE seen_at < {ago $1}`, []any{c.Nodes.Seconds()}},
		bounded("obs_hold", "lock_key, region, term", `touched_at < {ago CAST($1 AS DOUBLE PRECISION) + ttl_ms / 1000.0}`, c.StaleLocks),
		bounded("int_lock", "lock_key, region", staleLocksSQL, c.StaleLocks),
		bounded("obs_lock", "lock_key, region", `acquired_at < {ago $1}
			AND NOT EXISTS (SELECT 1 FROM int_lock l
			                 WHERE l.lock_key = obs_lock.lock_key AND l.region = obs_lock.region AND l.client_id = obs_lock.term)`, c.StaleLocks),
		bounded("obs_wait", "waiter, lock_key, region", `touched_at < {ago $1}`, c.StaleLocks),
		bounded("obs_lock_failure", "lock_key, region, predicate", `last_at < {ago $1}`, failuresKept),
	}
}

// deleteDeadSQL removes records of poison rows. By that of an accepted row a poll knows the
// row again, so it stays with its stream: neither time nor a pause ends what a person has
// accepted. That of a refused row says nothing to a poll.
const deleteDeadSQL = `
DELETE FROM obs_dead
 WHERE id IN (SELECT d.id
                FROM obs_dead d
                LEFT JOIN obs_cursor c ON c.stream = d.stream
               WHERE d.last_at < {past $1} AND (d.refused OR c.stream IS NULL)
               ORDER BY d.last_at
               LIMIT 5000)`

// emptyDeadSQL removes what was kept of the rows whose records stay.
const emptyDeadSQL = `
UPDATE obs_dead
   SET raw = ''
 WHERE id IN (SELECT id FROM obs_dead WHERE last_at < {past $1} AND raw <> '' ORDER BY last_at LIMIT 5000)`

// bounded deletes the rows of a table for which the condition holds, a batch at a time and in
// the order of the key. The deletion repeats the condition, since the row of a lock that
// another takes meanwhile is a new one.
func bounded(table, key, condition string, age time.Duration) chore {
	return chore{table, fmt.Sprintf(`DELETE FROM %[1]s WHERE %[3]s AND (%[2]s) IN (SELECT %[2]s FROM %[1]s WHERE %[3]s ORDER BY %[2]s LIMIT %[4]d)`,
		table, key, condition, cleanBatch), []any{age.Seconds()}}
}

// staleLocksSQL removes leases of ours that ended long ago: a node died and
// no other node wanted the lock since. While the row's term is ours, so is its TTL.
const staleLocksSQL = `EXISTS (SELECT 1 FROM obs_lock o
                WHERE o.lock_key = int_lock.lock_key AND o.region = int_lock.region AND o.term = int_lock.client_id
                  AND NOT EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = o.lock_key AND h.region = o.region AND h.group_term = o.term)
                  AND {stale int_lock CAST($1 AS DOUBLE PRECISION)})`

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
	ticker := time.NewTicker(j.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			j.once(ctx)
		}
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
