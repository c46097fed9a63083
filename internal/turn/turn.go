// Package turn is the vocabulary of turns: whose it was, what came of it, who
// is alive to take the next. The scheduler decides in these words and the
// coordination database remembers them.
package turn

import (
	"errors"
	"time"
)

// ErrBusy reports that no connection of this process to the coordination database
// was free in time, so that the database was not asked. It says nothing about the
// database.
var ErrBusy = errors.New("all connections of this node to the coordination database are busy")

// Outcome says how a poll or a turn ended. The values are those of metrics and
// tables.
type Outcome string

// The outcomes.
const (
	// OK means that the poll reached its end.
	OK Outcome = "ok"
	// Error means that it failed; what it had committed stays.
	Error Outcome = "error"
	// Lost means that the lease was lost while it ran.
	Lost Outcome = "lost"
	// Fenced means that a commit was refused because the lease had ended.
	Fenced Outcome = "fenced"
	// Conflict means that a commit was refused because the cursor had moved: an
	// operator paused or reset the observer. It is no failure.
	Conflict Outcome = "conflict"
	// Unreachable means that this node could not reach the source; the
	// stream's turn is left to another node.
	Unreachable Outcome = "unreachable"
	// Outdated means that the other nodes define the observer in another way, and
	// did so later; the stream's turn is left to one of them.
	Outdated Outcome = "outdated"
)

// State is what the coordination database knows of a type's turns.
type State struct {
	// At is the tick of the last turn taken; zero: none yet.
	At time.Time
	// Now is the database's clock.
	Now time.Time
	// Held says that a live lease stands on the type's lock; Holder names its
	// node and HolderBoot its boot id, where that is known.
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

// Stream is what is remembered of one observer's turns.
type Stream struct {
	Stream string
	// At is the tick of the last turn that this observer has had.
	At     time.Time
	Paused bool
	// Failures counts failed turns in a row; RetryAt is the end of the backoff
	// that follows, zero for none.
	Failures int
	RetryAt  time.Time
}

// StreamTaken is one observer's part of a turn.
type StreamTaken struct {
	Stream, Type, Node string
	At                 time.Time
	Started, Finished  time.Time
	Outcome            Outcome
	// Reason says why it failed; empty when it did not. It holds no value of a
	// row and no secret.
	Reason               string
	Rows, Events, Poison int64
	// Lag is how far the observer is behind, when the poll has left rows behind.
	Lag      time.Duration
	Failures int
	RetryAt  time.Time
	// Left says that the turn is left to another node, which will poll this
	// observer and no other.
	Left bool
}

// Node is a process that is alive, or was a moment ago.
type Node struct {
	// BootID is random for each start; Name is a label and may repeat.
	BootID, Name, Version, Backend, ConfigHash string
	// Types are the observer types that the node polls, Unreachable those
	// among them with a source that it cannot reach at present. Both sorted.
	Types, Unreachable []string
	// Outdated are the observers that the node leaves alone, because the others
	// define them in another way. Sorted.
	Outdated []string
	// Sinks are the sinks of the node's configuration.
	Sinks             []string
	StartedAt, SeenAt time.Time
}
