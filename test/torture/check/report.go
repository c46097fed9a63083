package check

import (
	"time"

	"github.com/observerd/observerd/test/torture/history"
)

// Verdict is what a run shows.
type Verdict string

// The verdicts.
const (
	Passed Verdict = "passed"
	Failed Verdict = "failed"
	Void   Verdict = "void"
)

// Report is what [Check] found.
type Report struct {
	Meta   history.Meta
	Counts Counts
	// Found counts the violations by kind; kinds without any are missing.
	Found map[Kind]int
	// Violations describes the first ones of each kind.
	Violations []Violation
	// Faults are those of the harness, by kind, sorted.
	Faults []FaultCount
	// Required are the counters that had to be above 0.
	Required []Requirement
	// Void are the reasons for which the run proves nothing; empty when it does.
	Void []string
	// Unchecked are rules that could not be applied, and what was missing.
	Unchecked []string
}

// Verdict sums the report up. A violation is one in a void run, too.
func (r Report) Verdict() Verdict {
	switch {
	case len(r.Found) > 0:
		return Failed
	case len(r.Void) > 0:
		return Void
	}
	return Passed
}

// Violation is one thing that was wrong.
type Violation struct {
	Kind Kind
	// Subject is the stream, lock, type or sink; Key the row, if it is about one.
	Subject, Key string
	// What happened, with numbers and never with values of a row.
	What string
	// IDs name the records around it, such as "step 17".
	IDs []string
	// From and To bound when it happened, as far as is known; zero when not.
	From, To time.Time
}

// FaultCount is how often a kind of fault was injected, and really happened.
type FaultCount struct {
	Kind          string
	Injected, Bit int
}

// Requirement is a counter that had to be above 0.
type Requirement struct {
	Counter string
	Value   float64
}

// Counts are the denominators.
type Counts struct {
	// Keys are rows that the source ever had, Versions what was committed of
	// them, deletions included.
	Keys, Versions int
	// Owed are the rows of which the log must have an event, or the end. Missed
	// are rows that vanished before they were seen, which is allowed.
	Owed, Missed int
	// Events are those of the log, Skipped the versions without one that another
	// replaced in time.
	Events, Skipped int
	// Delivered and Repeated are by sink: events that it has, and repeats in one
	// that cannot refuse them.
	Delivered, Repeated map[string]int

	// Commits are the steps of nodes that moved a cursor, Notes those that did
	// not; Resets and Pauses those of operators.
	Commits, Notes, Resets, Pauses int
	// Acquisitions are of locks. Expiries are those that found a lease past its
	// TTL; FreedDead are leases that were ended because their holder had died,
	// FreedDisturbed those of them whose holder lived but was cut off.
	Acquisitions, Expiries, FreedDead, FreedDisturbed int
	// Turns and Parts are those that were noted.
	Turns, Parts int
	// Polls are the reads that the source saw, WholePolls those that came to
	// their end.
	Polls, WholePolls int
	Overlaps          Overlaps
}

// Overlaps are the pairs of reads of one stream at one time.
type Overlaps struct {
	// Calm are the reads that no fault was near: among them there must be no
	// overlap, and each one found is Outside. Within are those that a fault
	// explains, Paired those of them in which the earlier read committed nothing
	// after the later one had.
	Calm, Outside, Within, Paired int
	// Longest is the longest of all.
	Longest time.Duration
}
