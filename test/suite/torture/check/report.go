package check

import (
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
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
	Counts map[Count]int
	// LongestOverlap is that of two reads of one stream at one time.
	LongestOverlap time.Duration
	// Found counts the violations by kind; kinds without any are missing.
	Found map[Kind]int
	// Violations describes the first ones of each kind.
	Violations []Violation
	// Faults are those of the harness, by kind.
	Faults map[string]FaultCount
	// Required are the counters that had to be above 0.
	Required map[string]float64
	// Void are the reasons for which the run proves nothing; empty when it does.
	Void []string
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
	// What happened, with the records around it, such as "step 17", and never
	// with values of a row.
	What string
	// At is when it happened, or was seen; zero when that is not known.
	At time.Time
}

// FaultCount is how often a kind of fault was injected, and really happened.
type FaultCount struct{ Injected, Bit int }

// Count names something that is counted, as denominators are.
type Count string

// The counts.
const (
	// Rows are what the source ever had, Versions what was committed of them,
	// deletions included.
	Rows     Count = "rows"
	Versions Count = "versions"
	// Owed are the rows of which the log must have an event, or the end.
	Owed   Count = "owed"
	Events Count = "events"
	// Commits are the steps of nodes that moved a cursor.
	Commits Count = "commits"
	// Acquisitions are of locks. Expiries are those that found a lease past its
	// TTL; Freed are leases that were ended because their holder had died.
	Acquisitions Count = "acquisitions"
	Expiries     Count = "expiries"
	Freed        Count = "freed"
	// Holds are the acquisitions of general locks under which something was written, Guarded
	// the writes, and Handovers the holds that came soon after one that excludes them.
	Holds     Count = "holds"
	Guarded   Count = "guarded"
	Handovers Count = "handovers"
	// Parts of turns are those that were noted.
	Parts Count = "parts"
	// Polls are the reads that the source saw, Calm those that no fault was near:
	// among them there must be no two at once, and each pair found is Outside.
	// Within are the pairs that a fault explains.
	Polls   Count = "polls"
	Calm    Count = "calm"
	Outside Count = "outside"
	Within  Count = "within"
	// Delivered are events that the sink has.
	Delivered Count = "delivered"
)
