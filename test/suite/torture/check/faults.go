package check

import (
	"maps"
	"slices"
	"time"
)

// harmless are kinds of faults that excuse nothing: what an operator does to a
// stream, or a disk to a sink, leaves leases and reads alone.
var harmless = []string{"pause", "reset", "empty-table", "full-disk"}

// disturbed reports whether a fault of the node, or of all, explains what it did
// at that instant.
func (c *checker) disturbed(node string, at time.Time) bool {
	for i := range c.run.Faults {
		f := &c.run.Faults[i]
		end := later(f.Begin, f.End).Add(c.settle)
		if slices.Contains(harmless, f.Kind) {
			continue
		}
		if (f.Node == node || f.Node == "") && !at.Before(f.Begin) && !at.After(end) {
			return true
		}
	}
	return false
}

// faults counts what was injected. A kind that never bit was not tested.
func (c *checker) faults() {
	for _, kind := range c.run.Meta.Planned {
		c.report.Faults[kind] = FaultCount{}
	}
	for _, f := range c.run.Faults {
		count := c.report.Faults[f.Kind]
		count.Injected++
		if f.Bit {
			count.Bit++
		}
		c.report.Faults[f.Kind] = count
	}
	for _, kind := range slices.Sorted(maps.Keys(c.report.Faults)) {
		switch count := c.report.Faults[kind]; {
		case count.Injected == 0:
			c.void("the fault %s was planned and never injected", kind)
		case count.Bit == 0:
			c.void("the fault %s was injected %d times and never bit", kind, count.Injected)
		}
	}
}
