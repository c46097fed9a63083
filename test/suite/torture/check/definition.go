package check

import (
	"slices"
	"time"

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
		if life := c.lifeAt(step.Node, grant.At); life != nil && c.loaded(life).Before(before.At) {
			c.blameStep(WrongDefinition, s, step, "%s set its definition in the place of one that %s had set in step %d after %s began",
				step.Node, who(before), before.ID, step.Node)
		}
	}
}

// loaded is when a process has loaded its configuration at the latest: it may need
// its time, and loads nothing while it is stopped.
func (c *checker) loaded(life *history.Life) time.Time {
	at := life.Began.Add(c.settle)
	for _, f := range c.run.Faults {
		if f.Kind == "stop" && f.Node == life.Node && f.Begin.Before(at) && f.End.After(life.Began) {
			at = at.Add(f.End.Sub(f.Begin))
		}
	}
	return at
}

// fromRead reports whether a node's step stored what a read of the source had found.
// A change of the definition comes before the read of its poll, and the answer to
// it may be lost. What is gone may have been read by an earlier poll.
func (s *stream) fromRead(step *history.Step) bool {
	return step.Node != "" && commits(step) && slices.Index(s.defined, step) <= 0 && !s.leftOver[step]
}
