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

// Budget bounds one step of a sweep, so that polls come in between. A group of
// equal timestamps may exceed it, and a chunk that was begun is committed.
type Budget struct {
	// Rows are read, at most; 0 means any number.
	Rows int
	// Time ends the step after the chunk in which it has passed; 0 means never.
	Time time.Duration
}

// sweepProgress is how far a step of a sweep is; nil for a poll.
type sweepProgress struct {
	Sweep  // as it is committed
	budget Budget
	began  time.Time
	// start is where the step began, position how far it has come.
	start, position string
	// rows were read in this step, and not all of them committed: uncounted.
	rows, uncounted int64
	done            bool
}

// kind is that of the sweep; empty for a poll.
func (s *sweepProgress) kind() SweepKind {
	if s == nil {
		return ""
	}
	return s.Kind
}

// step is the change of the sweep by a chunk with so many events.
func (s *sweepProgress) step(events int) *SweepStep {
	return &SweepStep{ID: s.ID, Position: s.position, Rows: s.uncounted, Events: int64(events), Done: s.done}
}

// commit notes a step that was committed.
func (s *sweepProgress) commit(step *SweepStep) {
	if s == nil {
		return
	}
	s.uncounted = 0
	s.Position = step.Position
	s.Rows += step.Rows
	s.Events += step.Events
	if step.Done {
		s.State = SweepDone
	}
}

// isSpent reports whether the step has used its budget and has moved. A step that did
// not move would be repeated for ever.
func (s *sweepProgress) isSpent(src Source) bool {
	if src.Compare(s.position, s.start) <= 0 {
		return false
	}
	return s.budget.Rows > 0 && s.rows >= int64(s.budget.Rows) ||
		s.budget.Time > 0 && time.Since(s.began) >= s.budget.Time
}

// hasPassed reports whether the position is further than the committed one.
func (s *sweepProgress) hasPassed() bool { return s != nil && s.position != s.Position }

// hasMoved reports whether the sweep has anything to commit.
func (s *sweepProgress) hasMoved() bool {
	return s.hasPassed() || s != nil && (s.done || s.uncounted > 0)
}
