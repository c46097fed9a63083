package check

import (
	"sort"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// holders finds writes by nodes that did not hold the type's lock at that
// moment, in the eyes of their own transaction. Operators need no lock.
func (c *checker) holders(s *stream) {
	for _, step := range s.steps {
		if why := stale(step); why != "" {
			c.blameStep(StaleCommit, s, step, "%s wrote when %s", step.Node, why)
		}
	}
}

// stale says why the step should not have been; empty if it should.
func stale(step *history.Step) string {
	switch {
	case step.Node == "":
		return "" // An operator.
	case step.Holder == "":
		return "nobody held the lock"
	case step.Holder != step.Node:
		return step.Holder + " held the lock"
	case step.Expired && commits(step):
		return "its lease had expired"
	}
	return ""
}

// commits reports whether a node's step stored what a poll has found. One that
// only moves the version, because an answer was lost, stores nothing; its guard
// looks at the lease a moment earlier than the record of it.
func commits(step *history.Step) bool {
	return moved(step) && (step.CommitID != "" || step.NewSeq != step.OldSeq || step.NewLow != step.OldLow)
}

// fences finds writes under an earlier token than one before them, and under a
// term that INT_LOCK had given to another before.
func (c *checker) fences(s *stream) {
	var last int64
	var before *history.Step
	for _, step := range s.steps {
		if step.Node == "" || step.HolderTerm == "" {
			continue
		}
		grant := c.grantOf[step.HolderTerm]
		switch {
		case grant == nil:
			c.blameStep(StaleCommit, s, step, "%s wrote under a term that was never granted", step.Node)
			continue
		case grant.Fence < last:
			c.blameStep(StaleCommit, s, step, "%s wrote under the token %d after step %d of %s under %d", step.Node, grant.Fence, before.ID, before.Node, last)
			continue
		}
		if ended, ok := c.endOf[step.HolderTerm]; ok && step.At.After(ended) {
			c.blameStep(StaleCommit, s, step, "%s wrote under the token %d after its lease had ended", step.Node, grant.Fence)
		}
		last, before = grant.Fence, step
	}
}

// logPrecision is how much too early the source's log may say that a poll began.
const logPrecision = 2 * time.Millisecond

// staleCursors finds commits by polls that had begun, and so read the cursor,
// before another node or an operator moved it.
func (c *checker) staleCursors(s *stream) {
	if len(c.run.Polls) == 0 {
		return // The run is void.
	}
	begun := s.begun()
	var foreign foreign
	for _, step := range s.steps {
		if !moved(step) {
			continue
		}
		other := foreign.last(step.Node)
		foreign.add(step)
		if !s.fromRead(step) || other == nil {
			continue
		}
		began, ok := lastBefore(begun[step.Node], step.At.Add(logPrecision))
		if ok && other.At.After(began.Add(logPrecision)) {
			c.blameStep(StaleCursor, s, step, "%s committed from a cursor that it had read before %s moved it in step %d", step.Node, who(other), other.ID)
		}
	}
}

// begun are the times at which each node began to read, in their order.
func (s *stream) begun() map[string][]time.Time {
	begun := make(map[string][]time.Time)
	for _, p := range s.polls {
		begun[p.Node] = append(begun[p.Node], p.Begin)
	}
	return begun
}

func who(step *history.Step) string {
	if step.Node == "" {
		return "an operator"
	}
	return step.Node
}

// lastBefore finds the last of sorted times that is not after at.
func lastBefore(times []time.Time, at time.Time) (time.Time, bool) {
	i := sort.Search(len(times), func(i int) bool { return times[i].After(at) })
	if i == 0 {
		return time.Time{}, false
	}
	return times[i-1], true
}

// foreign remembers the last step, and the last one by anybody but its author.
type foreign struct{ latest, others *history.Step }

func (f *foreign) add(step *history.Step) {
	if f.latest != nil && f.latest.Node != step.Node {
		f.others = f.latest
	}
	f.latest = step
}

// last is the last step that is not by node.
func (f *foreign) last(node string) *history.Step {
	if f.latest != nil && f.latest.Node != node {
		return f.latest
	}
	return f.others
}
