package check

import (
	"fmt"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// tolerance is how far two instants that belong together may lie apart because a
// server was slow between reading the clock twice.
const tolerance = 250 * time.Millisecond

// listed is how many violations of a kind are described; all are counted.
const listed = 20

// Check judges a run.
func Check(run history.Run) Report {
	c := &checker{run: &run, settle: run.Meta.TTL + 5*time.Second}
	c.report = Report{
		Meta: run.Meta, Found: make(map[Kind]int), Counts: make(map[Count]int),
		Faults: make(map[string]FaultCount), Required: make(map[string]float64),
	}
	c.index()
	for _, s := range c.streams {
		c.lost(s)
		c.duplicated(s)
		c.unexpected(s)
		c.story(s)
		c.definitions(s)
		c.believed(s)
		c.batches(s)
		c.cursor(s)
		c.holders(s)
		c.fences(s)
		c.staleCursors(s)
		c.paused(s)
		c.parts(s)
		c.overlaps(s)
	}
	for _, l := range c.locks {
		c.lease(l)
		c.tokens(l)
	}
	c.guarded()
	c.turns()
	c.sink()
	c.disclosed()
	c.faults()
	c.voids()
	return c.report
}

// checker is the state of one check.
type checker struct {
	run    *history.Run
	report Report
	// settle is how long after its end a fault may still explain an overlap or an
	// early release.
	settle time.Duration

	streams []*stream // as the meta data name them
	byName  map[string]*stream
	locks   []*lockRecord // sorted by key
	// grantOf has the grant of each term, without notes about its holder.
	grantOf map[string]*history.Grant
	// endOf has when each term left INT_LOCK.
	endOf map[string]time.Time
}

// blame reports a violation.
func (c *checker) blame(kind Kind, subject, key string, at time.Time, format string, args ...any) {
	c.report.Found[kind]++
	if c.report.Found[kind] <= listed {
		c.report.Violations = append(c.report.Violations, Violation{kind, subject, key, fmt.Sprintf(format, args...), at})
	}
}

func (c *checker) blameEvent(kind Kind, s *stream, e *history.Event, format string, args ...any) {
	c.blame(kind, s.Name, e.Subject, s.when(e.Seq), "event %d: "+format, append([]any{e.Seq}, args...)...)
}

func (c *checker) blameStep(kind Kind, s *stream, step *history.Step, format string, args ...any) {
	c.blame(kind, s.Name, "", step.At, "step %d: "+format, append([]any{step.ID}, args...)...)
}

func (c *checker) blameLease(kind Kind, lease *history.Lease, format string, args ...any) {
	c.blame(kind, lease.Key, "", lease.At, "lease %d: "+format, append([]any{lease.ID}, args...)...)
}

// void says why the run proves nothing.
func (c *checker) void(format string, args ...any) {
	c.report.Void = append(c.report.Void, fmt.Sprintf(format, args...))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
