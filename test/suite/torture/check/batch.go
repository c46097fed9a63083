package check

import (
	"github.com/observerd/observerd/test/suite/torture/history"
)

// batches finds commits that are not whole: the events of a step, and the step
// itself, come from one transaction, and every event belongs to a step. As a step
// begins where the one before it ended, no number of the stream is left out then.
func (c *checker) batches(s *stream) {
	steps := make(map[string][]*history.Step, len(s.commits))
	for _, step := range s.commits {
		steps[step.Xid] = append(steps[step.Xid], step)
	}
	got := make(map[*history.Step]int64, len(s.commits))
	for i, e := range s.events {
		if i > 0 && s.events[i-1].Seq == e.Seq {
			c.blameEvent(Duplicated, s, e, "its number is there twice")
		}
		if step := stepOf(steps[e.Xid], e.Seq); step != nil {
			got[step]++
			continue
		}
		c.blameEvent(HalfBatch, s, e, "no step of the cursor in its transaction %s counts it", e.Xid)
	}
	for _, step := range s.commits {
		if want := step.NewSeq - step.OldSeq; got[step] != want {
			c.blameStep(HalfBatch, s, step, "it counts %d events, its transaction %s has %d of them", want, step.Xid, got[step])
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
