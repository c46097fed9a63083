package events

import (
	"context"
	"errors"
	"time"
)

// ErrStale reports that the sink is claimed by another relay than this one, whose offsets
// do not count any more: by a later one or, if the log went back to an earlier state, by
// an earlier one. A relay with a new token claims it anew.
var ErrStale = errors.New("another relay has claimed the sink")

// ErrLogChanged reports that the event log has changed since events were read from it:
// it went back to an earlier state, in a failover or a restore, or the sink's offset was
// moved. What a sink has stored of it says nothing of the present log.
var ErrLogChanged = errors.New("the event log is not as it was when these events were read")

// Backlog is a stream with events that a sink has not stored.
type Backlog struct {
	Stream string
	// Acknowledged is the last sequence that the sink has stored, Last the
	// last one of the stream.
	Acknowledged, Last int64
	// Oldest is when the first event that the sink has not stored was logged, and Now when
	// the backlog was read, both by the log's clock. Oldest is zero where the log holds
	// none of the events.
	Oldest, Now time.Time
}

// age is how long the oldest event had waited when the backlog was read.
func (b Backlog) age() time.Duration {
	if b.Oldest.IsZero() {
		return 0
	}
	return max(0, b.Now.Sub(b.Oldest))
}

// Stored are events of one stream that a sink has stored, in order and without a
// gap. There is at least one.
type Stored struct {
	// After is the sink's offset behind which they were read.
	After  int64
	Events []Event
}

// Stream is the stream of the events.
func (s Stored) Stream() string { return s.Events[0].Stream }

// First is the sequence of the first event.
func (s Stored) First() int64 { return s.Events[0].Seq }

// Last is the sequence of the last event.
func (s Stored) Last() int64 { return s.Events[len(s.Events)-1].Seq }

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
	// Failed notes for people why the sink stores nothing; an empty reason is that it works.
	// Of a relay with an earlier epoch nothing is noted.
	Failed(ctx context.Context, sink, reason string, epoch int64) error
	// Acknowledge moves the sink's offset past what the sink has stored. Once more
	// does no harm. The error is [ErrStale] when the epoch is not the claim's any more,
	// and [ErrLogChanged] when the offset is not where the events were read, or the log
	// does not hold all of them.
	Acknowledge(ctx context.Context, sink string, stored Stored, epoch int64) error
}
