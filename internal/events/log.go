package events

import (
	"context"
	"errors"
)

// ErrStale reports that a later relay has claimed the sink: this one's offsets
// count no more.
var ErrStale = errors.New("a later relay has claimed the sink")

// Backlog is a stream with events that a sink has not stored.
type Backlog struct {
	Stream string
	// Acknowledged is the last sequence that the sink has stored, Last the
	// last one of the stream.
	Acknowledged, Last int64
}

// Log is the event log of the coordination database.
type Log interface {
	// Backlog returns the streams that hold events past the sink's offset.
	Backlog(ctx context.Context, sink string) ([]Backlog, error)
	// Read returns up to limit events after seq, in order; fewer where they
	// are large, but at least one if there is one.
	Read(ctx context.Context, stream string, after int64, limit int) ([]Event, error)
	// Claim stamps the epoch on the sink's offsets, so that a relay with an
	// earlier epoch cannot move them any more. The error is [ErrStale] when a
	// later epoch has claimed the sink.
	Claim(ctx context.Context, sink string, epoch int64) error
	// Acknowledge moves the sink's offset of the stream to seq. The error is
	// [ErrStale] when a later epoch has claimed the sink.
	Acknowledge(ctx context.Context, sink, stream string, seq, epoch int64) error
}
