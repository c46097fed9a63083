package check

import (
	"fmt"

	"github.com/observerd/observerd/test/torture/history"
)

// batches finds commits that are not whole: the events of a step, and the step
// itself, come from one transaction, and every event belongs to a step.
func (c *checker) batches(s *stream) {
	steps := make(map[string][]*history.Step, len(s.commits))
	for _, step := range s.commits {
		steps[step.Xid] = append(steps[step.Xid], step)
	}
	got := make(map[*history.Step]int64, len(s.commits))
	for _, e := range s.events {
		if step := stepOf(steps[e.Xid], e.Seq); step != nil {
			got[step]++
			continue
		}
		c.blame(Violation{
			Kind: HalfBatch, Subject: s.Name, Key: e.Subject, What: "no step of the cursor in the event's transaction counts it",
			IDs: []string{eventID(e), "transaction " + e.Xid}, From: s.when(e.Seq),
		})
	}
	for _, step := range s.commits {
		if want := step.NewSeq - step.OldSeq; got[step] != want {
			c.blame(Violation{
				Kind: HalfBatch, Subject: s.Name, What: fmt.Sprintf("the step counts %d events, its transaction has %d of them", want, got[step]),
				IDs: []string{stepID(step), "transaction " + step.Xid}, From: step.At, To: step.At,
			})
		}
	}
}

func stepOf(steps []*history.Step, seq int64) *history.Step {
	for _, step := range steps {
		if step.OldSeq < seq && seq <= step.NewSeq {
			return step
		}
	}
	return nil
}
