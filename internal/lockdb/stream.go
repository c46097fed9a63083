package lockdb

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/status"
)

// Streams are the cursors of the streams, as operators and commands see them
// (obs_cursor).
type Streams DB

// Streams returns the streams.
func (db *DB) Streams() *Streams { return (*Streams)(db) }

// Start returns the low-water mark of the first commit of a stream, or of the
// first after a reset. It is where the stream begins if its observer has a start
// of its own; empty for a stream that was never polled.
func (t *Streams) Start(ctx context.Context, stream string) (start string, err error) {
	err = t.db.Query(ctx, "read the start of "+stream, t.sql.SQL().Stream.Start,
		func(scan func(...any) error) error { return scan(&start) }, stream)
	return start, err
}

// LastError returns the error of the last poll of a stream; empty after a success, and
// for a stream that was never polled.
func (t *Streams) LastError(ctx context.Context, stream string) (reason string, err error) {
	err = t.db.Query(ctx, "read the last failure of "+stream, t.sql.SQL().Stream.LastError,
		func(scan func(...any) error) error { return scan(&reason) }, stream)
	return reason, err
}

// StreamStatus is the state of one observer, for a person.
type StreamStatus struct {
	Stream      string
	LastSeq     int64
	Low, Newest string
	// Live is the number of rows that are there, Gone of those that were.
	Live, Gone int64
	Paused     bool
	// Pause is that of a stream that is paused.
	Pause          status.Pause
	TurnAt, LastOK time.Time
	Failures       int
	RetryAt        time.Time
	LastError      string
	Lag            time.Duration
	// Complete reports whether the stream was complete once.
	Complete bool
	// Refusal is what waits for an answer, see [observer.Refusal]; empty for nothing.
	Refusal           string
	Dead              int64
	DeadSince         time.Time
	Version, StreamID int64
}

// Statuses returns the state of all observers that were ever polled,
// sorted by name.
func (t *Streams) Statuses(ctx context.Context) ([]StreamStatus, error) {
	return sqldb.All(ctx, t.db, "read the state of observers", t.sql.SQL().Stream.Statuses,
		func(scan sqldb.Scan, s *StreamStatus) error {
			var lag int64
			err := scan(&s.Stream, &s.StreamID, &s.Version, &s.LastSeq, &s.Low, &s.Newest, &s.Live, &s.Gone,
				&s.Paused, sqldb.ScanTime(&s.Pause.At), sqldb.ScanTime(&s.Pause.Until), &s.Pause.By, &s.Pause.Reason,
				sqldb.ScanTime(&s.TurnAt), sqldb.ScanTime(&s.LastOK), &s.Failures, sqldb.ScanTime(&s.RetryAt), &s.LastError, &lag, &s.Complete, &s.Dead, sqldb.ScanTime(&s.DeadSince), &s.Refusal)
			s.Lag = time.Duration(lag) * time.Millisecond
			if !s.Paused {
				s.Pause = status.Pause{}
			}
			return err
		})
}

// Refused returns the refusal of the last poll of a stream, and whether that is
// accepted already; empty for nothing. See [observer.Refusal].
func (t *Streams) Refused(ctx context.Context, stream string) (refusal string, accepted bool, err error) {
	err = t.db.Query(ctx, "read what "+stream+" refused", t.sql.SQL().Stream.Refused,
		func(scan func(...any) error) error { return scan(&refusal, &accepted) }, stream)
	return refusal, accepted, err
}
