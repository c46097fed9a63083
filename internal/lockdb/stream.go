package lockdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/turn"
)

// Streams returns what is remembered of the turns of these observers. One that
// was never polled is missing from the result.
func (db *DB) Streams(ctx context.Context, ids []string) (map[string]turn.Stream, error) {
	list, err := db.engine.keyList(ids)
	if err != nil {
		return nil, fmt.Errorf("read the turns of observers: %w", err)
	}
	found := make(map[string]turn.Stream, len(ids))
	err = db.query(ctx, "read the turns of observers", streamsSQL,
		func(scan func(...any) error) error {
			var s turn.Stream
			err := scan(&s.Stream, instant{&s.At}, &s.Paused, &s.Failures, instant{&s.RetryAt})
			found[s.Stream] = s
			return err
		}, list)
	return found, err
}

const streamsSQL = `SELECT stream, turn_at, paused, failures, retry_at FROM obs_cursor WHERE stream {among $1}`

// NoteStream notes one observer's part of a turn, and adds it to the history
// of polls. It is refused with lock.ErrFenced when the lease has ended.
func (db *DB) NoteStream(ctx context.Context, g lock.Grant, t turn.StreamTaken) error {
	var at, retry any
	if !t.Left {
		at = db.d.bindTime(t.At)
	}
	if !t.RetryAt.IsZero() {
		retry = db.d.bindTime(t.RetryAt)
	}
	reason := storable(t.Reason)
	err := db.engine.noteStream(ctx, guardedArgs(g, t.Stream, at, t.Failures, retry, reason, string(t.Outcome), t.Lag.Milliseconds()), []any{
		t.Type, t.Stream, t.Node, db.d.bindTime(t.At), db.d.bindTime(t.Started), db.d.bindTime(t.Finished),
		string(t.Outcome), reason, t.Rows, t.Events, t.Poison,
	})
	if errors.Is(err, lock.ErrFenced) {
		db.metrics.staleCommits.Inc()
	}
	if err != nil {
		return fmt.Errorf("note the turn of %s: %w", t.Stream, db.told(db.main, err))
	}
	return nil
}

const noteStreamSQL = `
INSERT INTO obs_cursor AS c (stream, turn_at, failures, retry_at, last_error, last_ok_at, lag_ms)
SELECT $5, $6, $7, $8, $9, CASE WHEN $10 = 'ok' THEN {now} END, $11 WHERE {guard}
ON CONFLICT (stream) DO UPDATE
   SET turn_at = coalesce(excluded.turn_at, c.turn_at), failures = excluded.failures, retry_at = excluded.retry_at,
       last_error = excluded.last_error, last_ok_at = coalesce(excluded.last_ok_at, c.last_ok_at),
       lag_ms = CASE WHEN excluded.last_ok_at IS NULL THEN c.lag_ms ELSE excluded.lag_ms END`

const addPollSQL = `
INSERT INTO obs_poll (type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count)`

// noteStream on PostgreSQL is one statement and one commit.
func (e *postgresEngine) noteStream(ctx context.Context, note, poll []any) error {
	text := e.db.guardedSQL(`WITH noted AS (` + noteStreamSQL + ` RETURNING 1)` + addPollSQL + `
SELECT $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22 FROM noted`)
	return wrote(e.db.main.ExecContext(ctx, text, append(note, poll...)...))
}

func (e *sqliteEngine) noteStream(ctx context.Context, note, poll []any) (err error) {
	tx, err := e.db.main.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = endTx(tx, err) }()
	if err := wrote(tx.ExecContext(ctx, e.db.guardedSQL(noteStreamSQL), note...)); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, e.db.d.sql(addPollSQL+` VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`), poll...)
	return err
}

// Start returns the low-water mark of the first commit of a stream, or of the
// first after a reset. It is where the stream begins if its observer has a start
// of its own; empty for a stream that was never polled.
func (db *DB) Start(ctx context.Context, stream string) (start string, err error) {
	err = db.query(ctx, "read the start of "+stream, `SELECT start_ts FROM obs_cursor WHERE stream = $1`,
		func(scan func(...any) error) error { return scan(&start) }, stream)
	return start, err
}

// LastError returns what the last poll of a stream has failed with; empty after
// one that went well, and for a stream that was never polled.
func (db *DB) LastError(ctx context.Context, stream string) (reason string, err error) {
	err = db.query(ctx, "read the last failure of "+stream, `SELECT last_error FROM obs_cursor WHERE stream = $1`,
		func(scan func(...any) error) error { return scan(&reason) }, stream)
	return reason, err
}

// StreamStatus is what a person wants to know of one observer.
type StreamStatus struct {
	Stream            string
	LastSeq           int64
	Low, Newest       string
	Live              int64
	Paused            bool
	TurnAt, LastOK    time.Time
	Failures          int
	RetryAt           time.Time
	LastError         string
	Lag               time.Duration
	Dead              int64
	Version, StreamID int64
}

// StreamStatuses returns the state of all observers that were ever polled,
// sorted by name.
func (db *DB) StreamStatuses(ctx context.Context) ([]StreamStatus, error) {
	var all []StreamStatus
	err := db.query(ctx, "read the state of observers", `
		SELECT c.stream, c.stream_id, c.version, c.last_seq, c.low_ts, c.newest_ts, c.live_count, c.paused,
		       c.turn_at, c.last_ok_at, c.failures, c.retry_at, c.last_error, c.lag_ms,
		       coalesce(d.n, 0)
		  FROM obs_cursor c
		  LEFT JOIN (SELECT stream, count(*) AS n FROM obs_dead GROUP BY stream) d ON d.stream = c.stream
		 ORDER BY c.stream`,
		func(scan func(...any) error) error {
			var s StreamStatus
			var lag int64
			err := scan(&s.Stream, &s.StreamID, &s.Version, &s.LastSeq, &s.Low, &s.Newest, &s.Live, &s.Paused,
				instant{&s.TurnAt}, instant{&s.LastOK}, &s.Failures, instant{&s.RetryAt}, &s.LastError, &lag, &s.Dead)
			s.Lag = time.Duration(lag) * time.Millisecond
			all = append(all, s)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("stream status: %w", err)
	}
	return all, nil
}
