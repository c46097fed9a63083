package check

import (
	"fmt"
	"time"

	"github.com/observerd/observerd/test/torture/history"
)

// Check judges a run by its own demands.
func Check(run history.Run) Report { return DemandsOf(run.Meta).Check(run) }

// Check judges a run.
func (d Demands) Check(run history.Run) Report {
	c := &checker{run: &run, demands: d.withDefaults(run.Meta)}
	c.report = Report{
		Meta: run.Meta, Found: make(map[Kind]int), Counts: make(map[Count]int),
		Faults: make(map[string]FaultCount), Required: make(map[string]float64),
	}
	c.index()
	for _, s := range c.streams {
		c.lost(s)
		c.duplicated(s)
		c.unexpected(s)
		c.order(s)
		c.story(s)
		c.definitions(s)
		c.believed(s)
		c.sequence(s)
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
	c.turns()
	c.sinks()
	c.disclosed()
	c.faults()
	c.voids()
	return c.report
}

// checker is the state of one check.
type checker struct {
	run     *history.Run
	demands Demands
	report  Report

	streams []*stream // as the meta data name them
	byName  map[string]*stream
	locks   []*lockRecord // sorted by key
	// grantOf has the grant of each term, without notes about its holder.
	grantOf map[string]*history.Grant
	// endOf has when each term left INT_LOCK.
	endOf map[string]time.Time
	// unchecked has the reasons that were given already.
	unchecked map[string]bool
}

// blame reports a violation.
func (c *checker) blame(v Violation) {
	c.report.Found[v.Kind]++
	if c.report.Found[v.Kind] <= c.demands.Listed {
		c.report.Violations = append(c.report.Violations, v)
	}
}

// void says why the run proves nothing.
func (c *checker) void(format string, args ...any) {
	c.report.Void = append(c.report.Void, fmt.Sprintf(format, args...))
}

// skip says, once, which rule cannot be applied.
func (c *checker) skip(reason string) {
	if c.unchecked[reason] {
		return
	}
	if c.unchecked == nil {
		c.unchecked = make(map[string]bool)
	}
	c.unchecked[reason] = true
	c.report.Unchecked = append(c.report.Unchecked, reason)
}

func stepID(s *history.Step) string   { return fmt.Sprintf("step %d", s.ID) }
func leaseID(l *history.Lease) string { return fmt.Sprintf("lease %d", l.ID) }
func grantID(g *history.Grant) string { return fmt.Sprintf("grant %d", g.ID) }
func eventID(e *history.Event) string { return fmt.Sprintf("event %d", e.Seq) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
