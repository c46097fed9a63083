package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// turns finds turns of a type that were taken twice, or sooner than the
// interval after the one before.
func (c *checker) turns() {
	byType := make(map[string][]*history.Turn)
	for i := range c.run.Turns {
		t := &c.run.Turns[i]
		byType[t.Type] = append(byType[t.Type], t)
	}
	for _, name := range slices.Sorted(maps.Keys(byType)) {
		turns := byType[name]
		slices.SortStableFunc(turns, func(a, b *history.Turn) int { return cmp.Compare(a.ID, b.ID) })
		for i := 1; i < len(turns); i++ {
			before, now := turns[i-1], turns[i]
			gap := now.Turn.Sub(before.Turn)
			if interval := c.run.Meta.Interval; gap > 0 && (interval == 0 || gap%interval == 0) {
				continue
			}
			c.blame(PolledTooOften, name, "", now.At, "turn %d: %s took it %s after the one that %s had taken", now.ID, now.Node, gap, before.Node)
		}
	}
}

// parts finds streams that were polled again for a turn in which they had been.
// One that could not be reached, or is defined in another way than the node has
// it, is left to other nodes, in the same turn. A poll that left rows behind is
// followed by the node itself, before it takes the turn.
func (c *checker) parts(s *stream) {
	var done *history.Part
	for _, p := range s.notes {
		if done != nil && !p.Turn.After(done.Turn) && !c.follows(s, done, p) {
			c.blame(PolledTooOften, s.Name, "", p.Finished, "part %d: %s polled it again for a turn of which %s had noted %q", p.ID, p.Node, done.Node, done.Outcome)
		}
		if p.Outcome != "unreachable" && p.Outcome != "outdated" {
			done = p
		}
	}
}

// follows reports whether the later part may go on where the earlier has ended.
func (c *checker) follows(s *stream, earlier, later *history.Part) bool {
	if earlier.Node != later.Node || earlier.Outcome != "ok" || !later.Turn.Equal(earlier.Turn) || later.Started.Before(earlier.Finished) {
		return false
	}
	return !slices.ContainsFunc(c.run.Turns, func(t history.Turn) bool {
		return t.Type == s.Type && t.Turn.Equal(later.Turn) && t.At.Before(later.Started)
	})
}
