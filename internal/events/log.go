package events

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"
)

// ErrStale reports that the sink is claimed by another relay than this one, whose offsets
// do not count any more: by a later one or, if the log went back to an earlier state, by
// an earlier one. A relay with a new token claims it anew.
var ErrStale = errors.New("another relay has claimed the sink")

// ErrLogChanged reports that the event log has changed since events were read from it:
// it went back to an earlier state, in a failover or a restore, or the sink's offset was
// moved. What a sink has stored of it says nothing of the present log.
var ErrLogChanged = errors.New("the event log is not as it was when these events were read")

// Position is an event of a stream, by its place in a log and by its id.
type Position struct {
	Stream string
	// Log is the id of the event log that has counted Seq.
	Log uuid.UUID
	Seq int64
	ID  uuid.UUID
	// Digest is one of the ids of all events of the stream that were stored, up to this one.
	Digest uuid.UUID
}

// Is reports whether two positions are of the same event, in whichever log.
func (p Position) Is(o Position) bool { return p.Stream == o.Stream && p.Seq == o.Seq && p.ID == o.ID }

// Ends returns the last event of each stream of a batch, in the order in which the streams
// begin in it. since has the positions of streams before it, whose digests are continued.
func Ends(batch []Event, log uuid.UUID, since map[string]Position) []Position {
	var ends []Position
	at, n := make(map[string]int), 0
	var both [32]byte
	for i := range batch {
		e := &batch[i]
		if i == 0 || e.Stream != batch[i-1].Stream {
			var known bool
			if n, known = at[e.Stream]; !known {
				n = len(ends)
				at[e.Stream] = n
				ends = append(ends, since[e.Stream])
			}
		}
		copy(both[copy(both[:], ends[n].Digest[:]):], e.ID[:])
		sum := sha256.Sum256(both[:])
		ends[n] = Position{Stream: e.Stream, Log: log, Seq: e.Seq, ID: e.ID, Digest: uuid.UUID(sum[:16])}
	}
	return ends
}

// Backlog is a stream with events behind a sink's offset.
type Backlog struct {
	Stream string
	// Offset is the last sequence that the sink needs no more, Last the last one of the
	// stream, and Next the first one behind the offset that the log holds; 0 where it
	// holds none.
	Offset, Next, Last int64
	// Oldest is when that one was logged, and Now when the backlog was read, both by the
	// log's clock.
	Oldest, Now time.Time
	// Paused says that an operator, or the receiver, has paused the sink.
	Paused bool
}

// Age is how long the oldest event had waited when the backlog was read.
func (b Backlog) Age() time.Duration {
	if b.Oldest.IsZero() {
		return 0
	}
	return max(0, b.Now.Sub(b.Oldest))
}

// Range is a part of a stream: the events behind After, up to Last.
type Range struct {
	Stream      string
	After, Last int64
}

// Step is by how far the offset of a sink moves in one stream.
type Step struct {
	// After is the offset behind which the events were read.
	After int64
	// Events are all events between After and the new offset, in order. There is at
	// least one. Their data is not needed.
	Events []Event
	// Server is what [Log].Read said of them; empty for nothing.
	Server string
	// Stored is the last of them that the sink has stored; nil for none: events that a
	// filter leaves out, or that are parked, move the offset alone.
	Stored *Position
	// Parked are those of them that are parked, in order.
	Parked []Parking
}

// Parking is an event that is put aside, and why.
type Parking struct {
	Seq int64
	// Reason is for people, without a value of the row.
	Reason string
}

// Key is what the events of one row have in common.
type Key struct{ Stream, Subject string }

// Key is the key of the event.
func (e *Event) Key() Key { return Key{e.Stream, e.Subject} }

// ParkedKey is a key of which a sink has parked events.
type ParkedKey struct {
	Key
	// Events is how many there are, and First and Last are the sequences of the first and the
	// last of them.
	Events      int
	First, Last int64
	// Oldest is when the first of them was parked, and Now when that was read, both by the
	// log's clock.
	Oldest, Now time.Time
	// Retry says that an operator wants them delivered, Paused that the sink is paused.
	Retry, Paused bool
}

// Stream is the stream of the events.
func (s Step) Stream() string { return s.Events[0].Stream }

// First is the sequence of the first event.
func (s Step) First() int64 { return s.Events[0].Seq }

// Last is the sequence of the last event, which is the new offset.
func (s Step) Last() int64 { return s.Events[len(s.Events)-1].Seq }

// Mark is what the log knows of a sink in one stream.
type Mark struct {
	Stream string
	// Offset is the last sequence that the sink needs no more.
	Offset int64
	// Stored is the last event that the sink has stored; its Seq is 0 for none. Retention
	// may have taken the event.
	Stored Position
	// Adopted says that an operator has the stream go on from its offset, whatever the
	// sink holds.
	Adopted bool
}

// Log is the event log of the coordination database, as the relay of a sink sees it.
type Log interface {
	// Claim stamps the epoch on the sink, so that a relay with an earlier epoch cannot
	// move its offsets any more, and returns the id of the log. The error is [ErrStale]
	// when a later epoch has claimed the sink.
	Claim(ctx context.Context, sink string, epoch int64) (log uuid.UUID, err error)
	// Backlog returns the streams that hold events past the sink's offset, by name.
	Backlog(ctx context.Context, sink string) ([]Backlog, error)
	// Read returns the events of the ranges, at most one range of each stream: range after
	// range, each in order. It ends early behind as many bytes of data, but returns one
	// event if there is one. As long as the log's server stays the same, which has them, no
	// other events can have taken their places.
	Read(ctx context.Context, ranges []Range, bytes int) (batch []Event, server string, err error)
	// Failed notes for people why the sink stores nothing; an empty reason is that it works.
	// Of a relay with an earlier epoch nothing is noted.
	Failed(ctx context.Context, sink, reason string, epoch int64) error
	// Move moves offsets of the sink, at most one of each stream, and parks what the steps
	// say in the same transaction. Once more does no harm.
	// The error is [ErrStale] when the epoch is not the claim's any more, and
	// [ErrLogChanged] when an offset is not where the events were read, or the log does
	// not hold all of them; those of other streams may have moved then.
	Move(ctx context.Context, sink string, steps []Step, epoch int64) error
	// Parked returns the keys of which events are parked, in no order.
	Parked(ctx context.Context, sink string) ([]ParkedKey, error)
	// Retries returns parked events of keys that an operator wants delivered, up to the offset
	// of their stream, stream by stream, each in order; as many, and as large, as Read does.
	Retries(ctx context.Context, sink string, limit, bytes int) ([]Event, error)
	// Unpark removes events that were delivered. The error is [ErrStale] as above.
	Unpark(ctx context.Context, sink string, delivered []Event, epoch int64) error
	// Repark keeps a parked event, and what is parked of its key, until an operator wants
	// them delivered again. The error is [ErrStale] as above.
	Repark(ctx context.Context, sink string, refused Event, reason string, epoch int64) error
	// Marks returns what the log knows of the sink, of each stream of which it knows
	// something.
	Marks(ctx context.Context, sink string) ([]Mark, error)
	// Seek has a stream go on behind what the sink holds: it sets the offset that the mark
	// has to that one, and remembers the position as stored. The error is [ErrStale] as
	// above, and [ErrLogChanged] where the mark has changed.
	Seek(ctx context.Context, sink string, from Mark, offset int64, stored Position, epoch int64) error
	// Holds returns those of the positions whose event the log has under that id, and
	// those whose event retention has taken, both as they were given.
	Holds(ctx context.Context, positions []Position) (held, taken []Position, err error)
	// Pause has the relays of all nodes leave the sink alone until it is resumed.
	Pause(ctx context.Context, sink, reason string, epoch int64) error
	// Delivered compares the log with an event with which the target of a sink ends.
	Delivered(ctx context.Context, last Event)
}
