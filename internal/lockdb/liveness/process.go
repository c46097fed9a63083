package liveness

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// noteEvery is how often a process notes itself in obs_process.
const noteEvery = time.Minute

// note lets others know that there is a process which may hold locks, as a node's beats do.
// A process that is not noted lives by its TTLs.
func (m *Monitor) note(ctx context.Context) {
	if time.Since(m.noted) < noteEvery {
		return
	}
	err := m.attempt(ctx, 2*m.opts.Every, func(ctx context.Context) error {
		_, err := m.db.Lease.ExecContext(ctx, m.db.SQL(`
			INSERT INTO obs_process (boot_id, liveness, seen_at) VALUES ($1, $2, {now})
			ON CONFLICT (boot_id) DO UPDATE SET liveness = excluded.liveness, seen_at = excluded.seen_at`), m.opts.BootID, m.p.kind())
		return err
	})
	if err != nil {
		m.opts.Logger.Debug("This process was not noted; trying again", "err", err)
		return
	}
	m.noted = time.Now()
}

// takeNoteBack leaves the note where the process still holds locks, which others free.
func (m *Monitor) takeNoteBack(ctx context.Context) {
	if !m.opts.ShowOnly {
		return
	}
	err := m.attempt(context.WithoutCancel(ctx), 2*m.opts.Every, func(ctx context.Context) error {
		_, err := m.db.Lease.ExecContext(ctx, m.db.SQL(`
			DELETE FROM obs_process
			 WHERE boot_id = $1
			   AND NOT EXISTS (SELECT 1 FROM obs_hold h WHERE h.boot_id = $1)
			   AND NOT EXISTS (SELECT 1 FROM obs_lock o
			                     JOIN int_lock l ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
			                    WHERE o.boot_id = $1)`), m.opts.BootID)
		return err
	})
	if err != nil {
		m.opts.Logger.Debug("The note of this process was not taken back; the janitor removes it", "err", err)
	}
}

// mostAbandoned bounds what one look reads of that, and begins to free. It goes on freeing
// for abandonedFor at most: the pollers wait for the next look, and the detector begins anew
// after a long gap.
const (
	mostAbandoned = 1000
	abandonedFor  = 500 * time.Millisecond
)

// abandonedSQL returns the leases of the processes in a list, $1, that are not in the
// regions of another, $2, and show their holder in the way $3. Others are judged by nobody, and
// must not fill the looks. A row of obs_hold whose lock has gone on to others holds nothing,
// and could not be freed.
//
// There is no ORDER BY: each look would read and sort all that the dead hold, as no index has
// it in an order. See [Monitor.inOneOrder].
const abandonedSQL = `
SELECT CAST(l.lock_key AS TEXT), CAST(l.region AS TEXT), CAST(l.client_id AS TEXT), o.node, o.name, o.boot_id, o.liveness, CAST(l.created_date AS TEXT), FALSE
  FROM obs_lock o
  JOIN int_lock l ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
 WHERE o.boot_id {among $1} AND o.boot_term = o.term AND NOT (o.region {among $2}) AND o.liveness = $3
UNION ALL
SELECT CAST(h.lock_key AS TEXT), CAST(h.region AS TEXT), CAST(h.term AS TEXT), h.node, h.name, h.boot_id, h.liveness, {mark h.touched_at}, TRUE
  FROM obs_hold h
 WHERE h.boot_id {among $1} AND h.liveness = $3
   AND h.group_term = (SELECT l.client_id FROM int_lock l WHERE l.lock_key = h.lock_key AND l.region = h.region)
 LIMIT $4`

// addAbandoned adds the leases of those who are absent to what the look has found.
func (m *Monitor) addAbandoned(ctx context.Context, s *snapshot, absent map[string]bool) error {
	if len(absent) == 0 {
		return nil
	}
	err := m.attempt(ctx, 2*m.opts.Every, func(ctx context.Context) error {
		boots, err := m.db.List(slices.Sorted(maps.Keys(absent)))
		if err != nil {
			return err
		}
		regions, err := m.db.List(append([]string{""}, m.opts.Regions...)) // NULL is in no list
		if err != nil {
			return err
		}
		return m.inOneOrder(ctx, func(db queryer) error {
			return readAbandoned(ctx, db, s, m.db.SQL(abandonedSQL), boots, regions, m.p.kind(), mostAbandoned)
		})
	})
	if err != nil {
		return fmt.Errorf("look what the dead hold: %w", err)
	}
	return nil
}

type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// inOneOrder runs a query whose plan finds rows in the same order each time. A lease is freed
// when one look after the other has found it, and one look reads a part of them.
// PostgreSQL would begin to read a large table where another scan has ended, or have several
// processes read it: each look would find others, and none would be freed.
func (m *Monitor) inOneOrder(ctx context.Context, query func(db queryer) error) (err error) {
	// Polls may have taken all connections but those of the leases.
	if m.db.Backend() == "sqlite" {
		return query(m.db.Lease)
	}
	tx, err := m.db.Lease.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	for _, text := range []string{`SET LOCAL synchronize_seqscans = off`, `SET LOCAL max_parallel_workers_per_gather = 0`} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return query(tx)
}

func readAbandoned(ctx context.Context, db queryer, s *snapshot, text string, args ...any) error {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var found []lease
	for rows.Next() {
		var l lease
		if err := rows.Scan(&l.Key, &l.Region, &l.term, &l.node, &l.name, &l.boot, &l.liveness, &l.touched, &l.shared); err != nil {
			return err
		}
		l.Key, l.term = sqldb.Unpadded(l.Key), sqldb.Unpadded(l.term)
		found = append(found, l)
	}
	s.leases = append(s.leases, found...)
	return rows.Err()
}

// vacateSQL deletes the row of INT_LOCK when none is left of those who shared the lock. It
// is locked.
const vacateSQL = `
DELETE FROM int_lock AS l
 WHERE lock_key = $1 AND region = $2
   AND EXISTS (SELECT 1 FROM obs_lock o WHERE o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id AND o.group_term = o.term)
   AND NOT EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id)`
