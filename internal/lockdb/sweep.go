package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
)

var (
	// ErrSweepRunning reports that a sweep of that stream and kind is running.
	ErrSweepRunning = errors.New("such a sweep is running already")
	// ErrSweepEnded reports that no sweep of that id is running: it is done, was
	// cancelled, or never began.
	ErrSweepEnded = errors.New("that sweep is not running")
)

// Sweeps are the ranges of sources that are read beside the polls (obs_sweep).
type Sweeps DB

// Sweeps returns the sweeps.
func (db *DB) Sweeps() *Sweeps { return (*Sweeps)(db) }

func scanSweep(scan sqldb.Scan, s *observer.Sweep) error {
	return scan(&s.ID, &s.Stream, &s.Kind, &s.State, &s.From, &s.Before, &s.Position, &s.Rows, &s.Events,
		sqldb.ScanTime(&s.StartedAt), sqldb.ScanTime(&s.UpdatedAt))
}

func stepArgs(ch *observer.Chunk) []any {
	s := ch.Sweep
	return []any{s.ID, s.Position, s.Rows, s.Events, s.Done, ch.Before.Stream}
}

// Start notes a sweep that the nodes will then do, step by step. Of s the
// stream, the kind and the range count. When one of that stream and kind is
// running already, the result is that one, with [ErrSweepRunning].
// A stream that was never polled can be swept too.
func (t *Sweeps) Start(ctx context.Context, s observer.Sweep, by By) (observer.Sweep, error) {
	for {
		started, err := t.insert(ctx, s, by)
		if !errors.Is(err, ErrSweepRunning) {
			return started, err
		}
		known, failed := t.Latest(ctx, s.Stream)
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

func (t *Sweeps) insert(ctx context.Context, s observer.Sweep, by By) (started observer.Sweep, err error) {
	err = t.db.InTx(ctx, fmt.Sprintf("start a sweep of %s", s.Stream), func(tx *sql.Tx) error {
		err := scanSweep(tx.QueryRowContext(ctx, t.sql.SQL().Sweep.Start, s.Stream, string(s.Kind), s.From, s.Before).Scan, &started)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrSweepRunning
		}
		if err != nil {
			return err
		}
		detail := fmt.Sprintf("%s %d: from %q, before %q", started.Kind, started.ID, started.From, started.Before)
		return audit(ctx, tx, t.sql.SQL(), Did(by, "start-sweep", started.Stream, detail))
	})
	return started, err
}

// Latest returns, of each stream and kind, the sweep that is running or was
// started last, sorted by stream and kind. An empty stream means all of them.
func (t *Sweeps) Latest(ctx context.Context, stream string) ([]observer.Sweep, error) {
	return sqldb.All(ctx, t.db, "read the sweeps", t.sql.SQL().Sweep.Latest, scanSweep, stream)
}

// Cancel ends a running sweep: its next step is refused. What it
// has committed stays. The error is [ErrSweepEnded] when no sweep of that id is
// running.
func (t *Sweeps) Cancel(ctx context.Context, id int64, by By) error {
	return t.db.InTx(ctx, fmt.Sprintf("cancel sweep %d", id), func(tx *sql.Tx) error {
		var stream, kind string
		err := tx.QueryRowContext(ctx, t.sql.SQL().Sweep.Cancel, id).Scan(&stream, &kind)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrSweepEnded
		}
		if err != nil {
			return err
		}
		return audit(ctx, tx, t.sql.SQL(), Did(by, "cancel-sweep", stream, fmt.Sprintf("%s %d", kind, id)))
	})
}
