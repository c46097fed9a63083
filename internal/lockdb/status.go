package lockdb

import (
	"context"
	"database/sql"
	"time"

	"github.com/observerd/observerd/internal/turn"
)

// HeldLock is a row of INT_LOCK as a person wants to see it.
type HeldLock struct {
	Key, Region, Term string
	// Name, Node and Fence are empty for a holder that is not ours.
	Name, Node string
	Fence      int64
	// Touched is when the lease was acquired or last renewed.
	Touched time.Time
	// Left is how long it still runs; 0 or less when it has expired. It is only
	// known of our own holders.
	Left time.Duration
	// Ahead is how far Touched lies ahead of the database's clock, where that is
	// more than a clock may be off: the database's has gone back, or that of a
	// foreign holder is wrong. A row of ours that is more than two TTLs ahead has
	// expired.
	Ahead time.Duration
}

// tolerable is how far the clock of a foreign holder may be off unsaid.
const tolerable = 2 * time.Second

// Locks returns all rows of INT_LOCK, sorted by region and key.
func (db *DB) Locks(ctx context.Context) ([]HeldLock, error) {
	var locks []HeldLock
	err := db.query(ctx, "read the locks", `
		SELECT l.lock_key, l.region, l.client_id, l.created_date, {utc}, o.name, o.node, o.fence, o.ttl_ms
		  FROM int_lock l
		  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
		 ORDER BY l.region, l.lock_key`,
		func(scan func(...any) error) error {
			var h HeldLock
			var term, name, node sql.NullString
			var fence, ttl sql.NullInt64
			var now time.Time
			err := scan(&h.Key, &h.Region, &term, instant{&h.Touched}, instant{&now}, &name, &node, &fence, &ttl)
			h.Key, h.Term = unpadded(h.Key), unpadded(term.String)
			h.Name, h.Node, h.Fence = name.String, node.String, fence.Int64
			if h.Ahead = h.Touched.Sub(now); h.Ahead < tolerable {
				h.Ahead = 0
			}
			if lives := time.Duration(ttl.Int64) * time.Millisecond; ttl.Valid && h.Ahead <= 2*lives {
				h.Left = lives - now.Sub(h.Touched)
			}
			locks = append(locks, h)
			return err
		})
	return locks, err
}

// Turns returns the last turn of every type, sorted by type.
func (db *DB) Turns(ctx context.Context) ([]turn.Taken, error) {
	var all []turn.Taken
	err := db.query(ctx, "read the turns", `
		SELECT type, turn_at, last_started, last_finished, last_node, last_outcome
		  FROM obs_schedule
		 ORDER BY type`,
		func(scan func(...any) error) error {
			var t turn.Taken
			err := scan(&t.Type, instant{&t.At}, instant{&t.Started}, instant{&t.Finished}, &t.Node, &t.Outcome)
			all = append(all, t)
			return err
		})
	return all, err
}

// Polls returns the last polls of all streams, newest first.
func (db *DB) Polls(ctx context.Context, limit int) ([]turn.StreamTaken, error) {
	var all []turn.StreamTaken
	err := db.query(ctx, "read the history of polls", `
		SELECT type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count
		  FROM obs_poll
		 ORDER BY finished_at DESC, id DESC
		 LIMIT $1`,
		func(scan func(...any) error) error {
			var t turn.StreamTaken
			err := scan(&t.Type, &t.Stream, &t.Node, instant{&t.At}, instant{&t.Started}, instant{&t.Finished},
				&t.Outcome, &t.Reason, &t.Rows, &t.Events, &t.Poison)
			all = append(all, t)
			return err
		}, limit)
	return all, err
}
