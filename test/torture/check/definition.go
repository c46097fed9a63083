package check

import (
	"fmt"
	"slices"
	"sort"

	"github.com/observerd/observerd/test/torture/history"
)

// definitions finds events that were not made by the definition in the cursor:
// those of one definition have the same columns. And it finds definitions that
// flap: a node's takes the place of another only when the node has loaded it
// since that was set.
func (c *checker) definitions(s *stream) {
	shapes := make(map[string]*history.Event)
	for _, e := range s.events {
		definition, ok := s.definedAs(e.Seq)
		first := shapes[definition]
		switch {
		case !ok || e.Change == changeGone: // It has the key alone.
		case first == nil:
			shapes[definition] = e
		case first.Shape != e.Shape:
			c.blame(Violation{
				Kind: WrongDefinition, Subject: s.Name, Key: e.Subject,
				What: fmt.Sprintf("it has the columns %s where the same definition had %s", e.Shape, first.Shape),
				IDs:  []string{eventID(first), eventID(e)}, From: s.when(first.Seq), To: s.when(e.Seq),
			})
		}
	}
	for i, step := range s.defined {
		grant := c.grantOf[step.HolderTerm]
		if i == 0 || grant == nil || step.Node == "" {
			continue
		}
		before := s.defined[i-1]
		// A process may need its time until it loads its configuration.
		if life := c.lifeAt(step.Node, grant.At); life != nil && life.Began.Add(c.demands.Settle).Before(before.At) {
			c.blame(Violation{
				Kind: WrongDefinition, Subject: s.Name,
				What: fmt.Sprintf("%s set its definition in the place of one that %s had set after %s began", step.Node, who(before), step.Node),
				IDs:  []string{stepID(before), stepID(step)}, From: before.At, To: step.At,
			})
		}
	}
}

// definedAs is the definition of the stream in the commit of an event.
func (s *stream) definedAs(seq int64) (definition string, ok bool) {
	i := sort.Search(len(s.commits), func(i int) bool { return s.commits[i].NewSeq >= seq })
	if i == len(s.commits) {
		return "", false
	}
	return s.commits[i].Definition, true
}

// fromRead reports whether a node's step stored what a read of the source had found.
// A change of the definition comes before the read of its poll, and the answer to
// it may be lost. What is gone may have been read by an earlier poll.
func (s *stream) fromRead(step *history.Step) bool {
	return step.Node != "" && commits(step) && slices.Index(s.defined, step) <= 0 && !s.leftOver[step]
}
