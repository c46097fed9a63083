package lockdb

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Retention says how long each history is kept. Every field must be positive.
type Retention struct {
	// Events are kept this long, and longer while a sink has not stored them:
	// one of Sinks, one of another node that was seen within Nodes, or one
	// that a relay has fed within Events.
	Events time.Duration
	// Polls, Dead, Audit and Nodes bound the tables of these names.
	Polls, Dead, Audit, Nodes time.Duration
	// StaleLocks is how long a lock of ours may have been expired before its
	// rows are removed. Rows of others are never touched.
	StaleLocks time.Duration
	// Sinks are those of this node. The offsets of sinks that no node has any
	// more are removed when no relay has fed them for as long as Events.
	Sinks []string
}

// cleanBatch bounds one deletion, so that it never holds locks for long.
const cleanBatch = 5000

// Clean removes what is stale, a bounded number of rows at a time. It is run
// under a lock of its own, so that one node does it; that two run it at once
// does no harm. It returns the number of rows removed.
func (db *DB) Clean(ctx context.Context, r Retention) (int64, error) {
	var total int64
	for _, task := range db.chores(r) {
		for {
			n, err := db.exec(ctx, "clean "+task.table, task.text, task.args...)
			if err != nil {
				return total, err
			}
			total += n
			db.metrics.cleaned.WithLabelValues(task.table).Add(float64(n))
			if n < cleanBatch {
				break
			}
		}
	}
	used, fed, err := db.sinks(ctx, r)
	if err != nil {
		return total, err
	}
	n, err := db.cleanOffsets(ctx, used, fed)
	total += n
	if err != nil {
		return total, err
	}
	n, err = db.cleanEvents(ctx, r, used)
	return total + n, err
}

// sinks returns the sinks that are in use, by this node's word, by that of
// others, or by a relay's recent work, and all that have offsets.
func (db *DB) sinks(ctx context.Context, r Retention) (used, fed map[string]bool, err error) {
	used, fed = map[string]bool{}, map[string]bool{}
	for _, sink := range r.Sinks {
		used[sink] = true
	}
	nodes, err := db.Nodes(ctx, r.Nodes)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range nodes {
		for _, sink := range n.Sinks {
			used[sink] = true
		}
	}
	err = db.query(ctx, "look for the sinks in use", `
		SELECT sink, max(updated_at) >= {ago $1} FROM obs_sink_offset GROUP BY sink`,
		func(scan func(...any) error) error {
			var sink string
			var recently bool
			err := scan(&sink, &recently)
			fed[sink] = true
			if recently {
				used[sink] = true
			}
			return err
		}, r.Events.Seconds())
	return used, fed, err
}

type chore struct {
	table, text string
	args        []any
}

func (db *DB) chores(r Retention) []chore {
	aged := func(table, column string, age time.Duration) chore {
		return chore{table, fmt.Sprintf(`DELETE FROM %[1]s WHERE id IN (SELECT id FROM %[1]s WHERE %[2]s < {past $1} ORDER BY %[2]s LIMIT %[3]d)`,
			table, column, cleanBatch), []any{age.Seconds()}}
	}
	return []chore{
		aged("obs_poll", "finished_at", r.Polls),
		aged("obs_dead", "last_at", r.Dead),
		aged("obs_audit", "at", r.Audit),
		{"obs_node", `DELETE FROM obs_node WHERE seen_at < {ago $1}`, []any{r.Nodes.Seconds()}},
		{"int_lock", staleLocksSQL + db.table.staleSQL("l", "o.ttl_ms / 1000.0", "CAST($1 AS DOUBLE PRECISION)") + `)`, []any{r.StaleLocks.Seconds()}},
		{"obs_lock", `
			DELETE FROM obs_lock
			 WHERE acquired_at < {ago $1}
			   AND NOT EXISTS (SELECT 1 FROM int_lock l
			                    WHERE l.lock_key = obs_lock.lock_key AND l.region = obs_lock.region AND l.client_id = obs_lock.term)`,
			[]any{r.StaleLocks.Seconds()}},
	}
}

// staleLocksSQL removes leases of ours that ended long ago: a node died and
// nobody wanted the lock since. While the row's term is ours, so is its TTL.
const staleLocksSQL = `
DELETE FROM int_lock AS l
 WHERE EXISTS (SELECT 1 FROM obs_lock o
                WHERE o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id AND `

// cleanOffsets removes the offsets of sinks that nobody uses any more.
func (db *DB) cleanOffsets(ctx context.Context, used, fed map[string]bool) (int64, error) {
	var total int64
	for sink := range fed {
		if used[sink] {
			continue
		}
		n, err := db.exec(ctx, "clean obs_sink_offset", `DELETE FROM obs_sink_offset WHERE sink = $1`, sink)
		if err != nil {
			return total, err
		}
		total += n
		db.metrics.cleaned.WithLabelValues("obs_sink_offset").Add(float64(n))
	}
	return total, nil
}

// cleanEvents removes old events that every sink in use has stored.
func (db *DB) cleanEvents(ctx context.Context, r Retention, used map[string]bool) (int64, error) {
	offsets, err := db.Log().storedByAll(ctx, used)
	if err != nil {
		return 0, err
	}
	var total int64
	for stream, seq := range offsets {
		for {
			n, err := db.exec(ctx, "clean obs_event", fmt.Sprintf(`
				DELETE FROM obs_event
				 WHERE stream = $1 AND seq <= $2 AND logged_at < {ago $3}
				   AND seq < (SELECT min(seq) + %d FROM obs_event WHERE stream = $1)`, cleanBatch),
				stream, seq, r.Events.Seconds())
			if err != nil {
				return total, err
			}
			total += n
			db.metrics.cleaned.WithLabelValues("obs_event").Add(float64(n))
			if n < cleanBatch {
				break
			}
		}
	}
	return total, nil
}

// storedByAll returns, for each stream, the sequence up to which all of the
// sinks have stored it. Without sinks that is everything.
func (l *Log) storedByAll(ctx context.Context, sinks map[string]bool) (map[string]int64, error) {
	stored, err := l.lastSeqs(ctx)
	if err != nil {
		return nil, err
	}
	for sink := range sinks {
		backlog, err := l.Backlog(ctx, sink)
		if err != nil {
			return nil, err
		}
		for _, b := range backlog {
			stored[b.Stream] = min(stored[b.Stream], b.Acknowledged)
		}
	}
	return stored, nil
}

// Guard runs f while this node holds the lock of the janitor; it returns
// without an error when another node has it.
type Guard func(ctx context.Context, f func(ctx context.Context) error) error

// Janitor runs [DB.Clean] now and then.
type Janitor struct {
	DB        *DB
	Guard     Guard
	Retention Retention
	// Every is the time between two runs on this node. Required.
	Every time.Duration
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
	err := j.Guard(ctx, func(ctx context.Context) error {
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
