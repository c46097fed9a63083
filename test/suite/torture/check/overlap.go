package check

import (
	"slices"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// overlaps finds reads of one stream that went on at the same time, as the
// source saw them. A lease cannot prevent that when a node sleeps or is cut
// off; that the earlier one commits no more behind the later one is the rule of
// [StaleCursor].
func (c *checker) overlaps(s *stream) {
	counts := c.report.Counts
	counts[Polls] += len(s.polls)
	var open []*history.Poll
	for _, p := range s.polls {
		if !c.disturbed(p.Node, p.Begin) {
			counts[Calm]++
		}
		open = slices.DeleteFunc(open, func(o *history.Poll) bool { return !o.End.After(p.Begin) })
		for _, earlier := range open {
			end := p.End
			if earlier.End.Before(end) {
				end = earlier.End
			}
			c.report.LongestOverlap = max(c.report.LongestOverlap, end.Sub(p.Begin))
			if c.disturbed(earlier.Node, p.Begin) {
				counts[Within]++
				continue
			}
			counts[Outside]++
			c.blame(Overlap, s.Name, "", p.Begin, "%s and %s read it at once for %s, and no fault was near", earlier.Node, p.Node, end.Sub(p.Begin))
		}
		open = append(open, p)
	}
}
