package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/observerd/observerd/internal/observer"
)

const sweepColumns = `id, stream, kind, state, from_ts, before_ts, position_ts, row_count, event_count, started_at, updated_at`

func scanSweep(scan func(...any) error) (observer.Sweep, error) {
	var s observer.Sweep
	err := scan(&s.ID, &s.Stream, &s.Kind, &s.State, &s.From, &s.Before, &s.Position, &s.Rows, &s.Events,
		instant{&s.StartedAt}, instant{&s.UpdatedAt})
	return s, err
}

// stepSQL is what a chunk changes about its sweep. A sweep that is not running
// is not found; one of another stream is not either.
const stepSQL = `
UPDATE obs_sweep
   SET position_ts = $2, row_count = row_count + $3, event_count = event_count + $4,
       state = CASE WHEN $5 THEN 'done' ELSE state END, updated_at = {now}
 WHERE id = $1 AND state = 'running' AND stream = $6`

// stepArgs are the first five of stepSQL, and the last five of sweepCommitSQL.
func stepArgs(s *observer.SweepStep) []any {
	return []any{s.ID, s.Position, s.Rows, s.Events, s.Done}
}

// cancelSweepsSQL cancels all sweeps of a stream.
const cancelSweepsSQL = `UPDATE obs_sweep SET state = 'cancelled', updated_at = {now} WHERE stream = $1 AND state = 'running'`

// StartSweep notes a sweep that the nodes will then do, step by step. Of s the
// stream, the kind and the range count. When one of that stream and kind is
// running, whoever started it, the result is that one, with [ErrSweepRunning].
// A stream that was never polled can be swept too.
func (db *DB) StartSweep(ctx context.Context, s observer.Sweep, actor string) (observer.Sweep, error) {
	for {
		started, err := db.insertSweep(ctx, s, actor)
		if !errors.Is(err, ErrSweepRunning) {
			return started, err
		}
		known, failed := db.Sweeps(ctx, s.Stream)
		if failed != nil {
			return observer.Sweep{}, failed
		}
		for _, k := range known {
			if k.Kind == s.Kind && k.State == observer.SweepRunning {
				return k, err
			}
		}
		// It has ended between the two looks.
	}
}

func (db *DB) insertSweep(ctx context.Context, s observer.Sweep, actor string) (started observer.Sweep, err error) {
	err = db.inTx(ctx, fmt.Sprintf("start a sweep of %s", s.Stream), func(tx *sql.Tx) error {
		var err error
		started, err = scanSweep(tx.QueryRowContext(ctx, db.d.sql(`
			INSERT INTO obs_sweep (stream, kind, state, from_ts, before_ts, position_ts, actor, started_at, updated_at)
			VALUES ($1, $2, 'running', $3, $4, $3, $5, {now}, {now})
			ON CONFLICT (stream, kind) WHERE state = 'running' DO NOTHING
			RETURNING `+sweepColumns), s.Stream, string(s.Kind), s.From, s.Before, actor).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrSweepRunning
		}
		if err != nil {
			return err
		}
		detail := fmt.Sprintf("%s %d: from %q, before %q", started.Kind, started.ID, started.From, started.Before)
		return db.audit(ctx, tx, Act{Actor: actor, Action: "start-sweep", Subject: started.Stream, Detail: detail})
	})
	return started, err
}

// Sweeps returns, of each stream and kind, the sweep that is running or was
// started last, sorted by stream and kind. An empty stream means all of them.
func (db *DB) Sweeps(ctx context.Context, stream string) ([]observer.Sweep, error) {
	var all []observer.Sweep
	err := db.query(ctx, "read the sweeps", `
		SELECT `+sweepColumns+`
		  FROM (SELECT s.*, row_number() OVER (PARTITION BY stream, kind
		                                       ORDER BY CASE state WHEN 'running' THEN 0 ELSE 1 END, id DESC) AS rank
		          FROM obs_sweep s
		         WHERE stream = $1 OR CAST($1 AS TEXT) = '') AS latest
		 WHERE rank = 1
		 ORDER BY stream, kind`,
		func(scan func(...any) error) error {
			s, err := scanSweep(scan)
			all = append(all, s)
			return err
		}, stream)
	return all, err
}

// CancelSweep ends a sweep that is running: its next step is refused. What it
// has committed stays. The error is [ErrSweepEnded] when no sweep of that id is
// running.
func (db *DB) CancelSweep(ctx context.Context, id int64, actor string) error {
	return db.inTx(ctx, fmt.Sprintf("cancel sweep %d", id), func(tx *sql.Tx) error {
		act := Act{Actor: actor, Action: "cancel-sweep"}
		var kind string
		err := tx.QueryRowContext(ctx, db.d.sql(`
			UPDATE obs_sweep SET state = 'cancelled', updated_at = {now} WHERE id = $1 AND state = 'running'
			RETURNING stream, kind`), id).Scan(&act.Subject, &kind)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrSweepEnded
		}
		if err != nil {
			return err
		}
		act.Detail = fmt.Sprintf("%s %d", kind, id)
		return db.audit(ctx, tx, act)
	})
}
