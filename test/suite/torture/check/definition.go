package check

import (
	"slices"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// definitions finds events that were not made by the definition in the cursor:
// those of one definition have the same columns. And it finds definitions that
// flap: a node's takes the place of another only when the node has loaded it
// since that was set.
func (c *checker) definitions(s *stream) {
	shapes := make(map[string]*history.Event)
	for _, e := range s.events {
		commit := s.commitOf(e.Seq)
		if commit == nil || e.Change == changeGone { // It has the key alone.
			continue
		}
		first := shapes[commit.Definition]
		switch {
		case first == nil:
			shapes[commit.Definition] = e
		case first.Shape != e.Shape:
			c.blameEvent(WrongDefinition, s, e, "it has the columns %s where event %d of the same definition has %s", e.Shape, first.Seq, first.Shape)
		}
	}
	for i, step := range s.defined {
		grant := c.grantOf[step.HolderTerm]
		if i == 0 || grant == nil || step.Node == "" {
			continue
		}
		before := s.defined[i-1]
		// A process may need its time until it loads its configuration.
		if life := c.lifeAt(step.Node, grant.At); life != nil && life.Began.Add(c.settle).Before(before.At) {
			c.blameStep(WrongDefinition, s, step, "%s set its definition in the place of one that %s had set in step %d after %s began",
				step.Node, who(before), before.ID, step.Node)
		}
	}
}

// fromRead reports whether a node's step stored what a read of the source had found.
// A change of the definition comes before the read of its poll, and the answer to
// it may be lost. What is gone may have been read by an earlier poll.
func (s *stream) fromRead(step *history.Step) bool {
	return step.Node != "" && commits(step) && slices.Index(s.defined, step) <= 0 && !s.leftOver[step]
}
