// Package turn has the types that the scheduler and the coordination database share:
// turns, their outcomes, and the nodes that are alive.
package turn

import (
	"errors"
	"time"
)

// ErrBusy reports that no connection of this process to the coordination database was
// free in time. The database was not asked, and may be well.
var ErrBusy = errors.New("all connections of this node to the coordination database are busy")

// Outcome is the result of a poll or a turn. Metrics and tables have the same values.
type Outcome string

// The outcomes.
const (
	// OK means that the poll succeeded.
	OK Outcome = "ok"
	// Error means that it failed; chunks that it has committed stay.
	Error Outcome = "error"
	// Lost means that the lease was lost while it ran.
	Lost Outcome = "lost"
	// Fenced means that a commit was refused because the lease had ended.
	Fenced Outcome = "fenced"
	// Conflict means that a commit was refused because the cursor had moved: an
	// operator paused or reset the observer. It is not a failure.
	Conflict Outcome = "conflict"
	// Unreachable means that this node could not reach the source; the
	// stream's turn is left to another node.
	Unreachable Outcome = "unreachable"
	// Outdated means that the other nodes have another, later definition of the
	// observer; the stream's turn is left to one of them.
	Outdated Outcome = "outdated"
)

// State is the state of a type's turns in the coordination database.
type State struct {
	// At is the tick of the last turn taken; zero: none yet.
	At time.Time
	// Now is the database's clock.
	Now time.Time
	// Held reports whether a live lease holds the type's lock; Holder is the name of
	// its node and HolderBoot its boot id, where they are known.
	Held               bool
	Holder, HolderBoot string
}

// Taken is a turn that has been taken.
type Taken struct {
	Type string
	// At is the tick whose turn it was.
	At                time.Time
	Started, Finished time.Time
	Node              string
	Outcome           Outcome
}

// Stream is the stored state of one observer's turns.
type Stream struct {
	Stream string
	// At is the tick of the last turn that this observer has had.
	At     time.Time
	Paused bool
	// Unread reports whether the last poll that succeeded has left rows unread.
	Unread bool
	// PausedUntil is when a pause ends by itself; zero for a stream that is not paused, or
	// until an operator resumes it.
	PausedUntil time.Time
	// Failures counts failed turns in a row, of one class or of those that share the
	// backoff of the type; FailureClass is that of the last one, empty for none. RetryAt is
	// the end of the backoff after them, zero for none.
	Failures     int
	FailureClass string
	RetryAt      time.Time
	// OKAt is when a poll last succeeded, and Lag how far behind it was if it left rows
	// unread. OKAt is zero where that says nothing of what the stream has: it was never
	// polled with success, was reset, or its first reading goes on.
	OKAt time.Time
	Lag  time.Duration
}

// StreamTaken is one observer's part of a turn.
type StreamTaken struct {
	Stream, Type, Node string
	At                 time.Time
	Started, Finished  time.Time
	Outcome            Outcome
	// Reason is why it failed; empty when it did not. It holds no value of a row and
	// no secret.
	Reason               string
	Rows, Events, Poison int64
	// Lag is how far the observer is behind, when the poll has left rows unread.
	Lag time.Duration
	// These are the stream's after it.
	Failures     int
	FailureClass string
	RetryAt      time.Time
	// Left reports whether the turn is left to another node, which will poll only
	// this observer.
	Left bool
}

// Node is a process that is alive, or was shortly before.
type Node struct {
	// BootID is random for each start; Name is a label and may repeat.
	BootID, Name, Version, Backend, ConfigHash string
	// Types are the observer types that the node polls, Unreachable those
	// among them with a source that it cannot reach at present. Both sorted.
	Types, Unreachable []string
	// Intervals are the distances between the starts of polls by type; nil for a node of a
	// version that does not tell.
	Intervals map[string]time.Duration
	// Outdated are the observers that the node does not poll, because the other nodes
	// define them in another way. Sorted.
	Outdated []string
	// Sinks are the sinks of the node's configuration.
	Sinks             []string
	StartedAt, SeenAt time.Time
}
