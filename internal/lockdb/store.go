package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
)

// Store is the coordination database as one poll sees it: bound to the lease
// under which it commits. It is an [observer.Store].
type Store struct {
	db    *DB
	grant lock.Grant
	// peek leaves the database as it is.
	peek bool
}

// Store binds the database to a lease.
func (db *DB) Store(g lock.Grant) *Store { return &Store{db: db, grant: g} }

// Peek returns a store that can only be read, for a dry run: the cursor of a
// stream that was never polled is not created, and a commit finds its lease
// ended.
func (db *DB) Peek() *Store { return &Store{db: db, peek: true} }

const cursorColumns = `stream_id, stream, version, last_seq, low_ts, newest_ts, row_count, live_count, query_fingerprint`

func scanCursor(scan func(...any) error) (observer.Cursor, error) {
	var c observer.Cursor
	err := scan(&c.ID, &c.Stream, &c.Version, &c.LastSeq, &c.Low, &c.Newest, &c.Rows, &c.Live, &c.Fingerprint)
	return c, err
}

// Cursor implements [observer.Store].
func (s *Store) Cursor(ctx context.Context, stream string) (observer.Cursor, error) {
	const read = `SELECT ` + cursorColumns + ` FROM obs_cursor WHERE stream = $1`
	c, err := scanCursor(s.db.read.QueryRowContext(ctx, s.db.d.sql(read), stream).Scan)
	if errors.Is(err, sql.ErrNoRows) && s.peek {
		return observer.Cursor{Stream: stream}, nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		if _, err := s.db.exec(ctx, "create the cursor of "+stream,
			`INSERT INTO obs_cursor (stream) VALUES ($1) ON CONFLICT (stream) DO NOTHING`, stream); err != nil {
			return observer.Cursor{}, err
		}
		c, err = scanCursor(s.db.read.QueryRowContext(ctx, s.db.d.sql(read), stream).Scan)
	}
	if err != nil {
		return observer.Cursor{}, fmt.Errorf("read the cursor of %s: %w", stream, err)
	}
	return c, nil
}

// Observed implements [observer.Store].
func (s *Store) Observed(ctx context.Context, c observer.Cursor, keys []string) (map[string]observer.Observed, error) {
	found := make(map[string]observer.Observed, len(keys))
	if c.Rows == 0 {
		return found, nil // Nothing was observed of this stream yet.
	}
	err := s.db.engine.observed(ctx, c.ID, keys, func(o observer.Observed) { found[o.Key] = o })
	if err != nil {
		return nil, fmt.Errorf("look up observed rows of %s: %w", c.Stream, err)
	}
	return found, nil
}

const observedColumns = `key, row_hash, version, row_number, gone`

func scanObserved(scan func(...any) error) (observer.Observed, error) {
	var o observer.Observed
	err := scan(&o.Key, &o.Hash, &o.Version, &o.Number, &o.Gone)
	return o, err
}

// Live implements [observer.Store].
func (s *Store) Live(ctx context.Context, c observer.Cursor, visit func(observer.Observed) error) error {
	return s.db.query(ctx, "read the live rows of "+c.Stream,
		`SELECT `+observedColumns+` FROM obs_observed WHERE stream_id = $1 AND NOT gone`,
		func(scan func(...any) error) error {
			o, err := scanObserved(scan)
			if err != nil {
				return err
			}
			return visit(o)
		}, c.ID)
}

// resolveTimeout bounds how long the fate of a commit is looked into after its
// connection was lost.
const resolveTimeout = 20 * time.Second

// Commit implements [observer.Store]. Its error is lock.ErrFenced when the
// lease had ended and [ErrConflict] when the cursor had moved.
func (s *Store) Commit(ctx context.Context, ch observer.Chunk) (observer.Cursor, error) {
	err := s.db.engine.commit(ctx, s.grant, &ch)
	if err != nil && outcomeUnknown(err) && !refused(err) {
		err = s.resolve(ctx, &ch, err)
	}
	switch {
	case errors.Is(err, lock.ErrFenced):
		s.db.metrics.staleCommits.Inc()
	case errors.Is(err, ErrConflict):
		s.db.metrics.conflicts.Inc()
	}
	if err != nil {
		return observer.Cursor{}, fmt.Errorf("commit to %s: %w", ch.Cursor.Stream, err)
	}
	if len(ch.Events) > 0 && s.db.onCommit != nil {
		s.db.onCommit()
	}
	return ch.Next(), nil
}

func refused(err error) bool {
	return errors.Is(err, lock.ErrFenced) || errors.Is(err, ErrConflict)
}

// resolve finds out what became of a commit whose answer was lost. The
// orphaned backend may still be at work, so it is not enough to look: the
// version is moved, which waits for the orphan's row lock and makes its
// compare-and-set fail should it come later. If the version had moved before,
// the commit id tells by whom.
func (s *Store) resolve(ctx context.Context, ch *observer.Chunk, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTimeout)
	defer cancel()
	for {
		committed, err := s.fate(ctx, ch)
		if err == nil {
			return s.resolved(committed, cause)
		}
		if !Unavailable(err) || ctx.Err() != nil {
			return fmt.Errorf("the outcome of a commit is unknown: %w", errors.Join(cause, err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (s *Store) resolved(committed bool, cause error) error {
	if committed {
		s.db.metrics.unknownCommits.WithLabelValues("committed").Inc()
		s.db.log.Info("Commit whose answer was lost had committed", "err", cause)
		return nil
	}
	s.db.metrics.unknownCommits.WithLabelValues("aborted").Inc()
	return fmt.Errorf("the connection was lost before the commit: %w", cause)
}

// fate moves the version if the commit has not.
func (s *Store) fate(ctx context.Context, ch *observer.Chunk) (committed bool, err error) {
	err = s.db.inTx(ctx, "resolve a commit", func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, s.db.d.sql(`
			UPDATE obs_cursor
			   SET version = version + 1, commit_id = NULL
			 WHERE stream_id = $1 AND version = $2`), ch.Cursor.ID, ch.Cursor.Version)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 1 {
			return err
		}
		var id sql.NullString
		err = tx.QueryRowContext(ctx, s.db.d.sql(`
			SELECT CAST(commit_id AS TEXT) FROM obs_cursor WHERE stream_id = $1`), ch.Cursor.ID).Scan(&id)
		committed = id.String == ch.CommitID.String()
		return err
	})
	return committed, err
}
