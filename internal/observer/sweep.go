package observer

import "time"

// SweepKind says why a range is read a second time.
type SweepKind string

// The kinds of sweeps. There is at most one of a kind and a stream at a time.
const (
	// SweepBackfill reads what lies before the observer's start.
	SweepBackfill SweepKind = "backfill"
	// SweepReconcile looks for what a back-dated timestamp has hidden.
	SweepReconcile SweepKind = "reconcile"
)

// SweepState says how far a sweep is.
type SweepState string

// The states of a sweep.
const (
	SweepRunning   SweepState = "running"
	SweepDone      SweepState = "done"
	SweepCancelled SweepState = "cancelled"
)

// Sweep reads a range beside the polls, in steps, each under the lock of the
// type and in the same fenced commits. It moves no mark of the stream, and no row
// becomes an event twice.
type Sweep struct {
	ID     int64
	Stream string
	Kind   SweepKind
	State  SweepState
	// From and Before bound the range, in the source's own text, see [Range].
	From, Before string
	// Position is where the next step begins: every row of the range below it
	// was read. It starts as From.
	Position string
	// Rows were read and Events written by all steps so far; rows that share
	// the timestamp at the end of a step count in the next step again.
	Rows, Events int64
	// StartedAt and UpdatedAt are by the coordination database's clock.
	StartedAt, UpdatedAt time.Time
}

// SweepStep is what a chunk changes about a sweep, in its own commit.
type SweepStep struct {
	ID       int64
	Position string
	// Rows and Events are added to the sweep's.
	Rows, Events int64
	// Done ends the sweep.
	Done bool
}
