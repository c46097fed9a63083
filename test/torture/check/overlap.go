package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/observerd/observerd/test/torture/history"
)

// overlaps finds reads of one stream that went on at the same time, as the
// source saw them. A lease cannot prevent that when a node sleeps or is cut
// off; but then the earlier one must not commit any more behind the later one.
func (c *checker) overlaps(s *stream) {
	c.report.Counts.Polls += len(s.polls)
	byNode := make(map[string]*activity)
	for _, p := range s.polls {
		if p.Whole {
			c.report.Counts.WholePolls++
		}
		if !c.disturbed(p.Node, p.Begin) {
			c.report.Counts.Overlaps.Calm++
		}
		a := of(byNode, p.Node)
		a.polls = append(a.polls, p)
	}
	for _, step := range s.steps {
		if s.fromRead(step) {
			a := of(byNode, step.Node)
			a.steps = append(a.steps, step)
		}
	}
	var open []*history.Poll
	for _, p := range s.polls {
		open = slices.DeleteFunc(open, func(o *history.Poll) bool { return !o.End.After(p.Begin) })
		for _, o := range open {
			c.overlap(s, o, p, behind(byNode[o.Node], o, byNode[p.Node], p))
		}
		open = append(open, p)
	}
}

// activity is what one node did to a stream.
type activity struct {
	polls []*history.Poll // by their begin
	steps []*history.Step // by id
}

func of(byNode map[string]*activity, node string) *activity {
	if byNode[node] == nil {
		byNode[node] = &activity{}
	}
	return byNode[node]
}

// overlap judges a pair. late is a commit of the earlier read behind one of the
// later, or nil.
func (c *checker) overlap(s *stream, earlier, later *history.Poll, late *history.Step) {
	o := &c.report.Counts.Overlaps
	end := earlier.End
	if later.End.Before(end) {
		end = later.End
	}
	o.Longest = max(o.Longest, end.Sub(later.Begin))
	v := Violation{Kind: Overlap, Subject: s.Name, From: later.Begin, To: end}
	if !c.disturbed(earlier.Node, later.Begin) {
		o.Outside++
		v.What = fmt.Sprintf("%s and %s read it at once for %s, and no fault was near", earlier.Node, later.Node, end.Sub(later.Begin))
		c.blame(v)
		return
	}
	o.Within++
	if late == nil {
		o.Paired++
		return
	}
	v.What, v.IDs = fmt.Sprintf("%s, which read it first, committed after %s had", earlier.Node, later.Node), []string{stepID(late)}
	c.blame(v)
}

// behind finds a commit of the earlier read that came after the first one of
// the later. Of two processes of one node it cannot be told whose a commit is.
func behind(a *activity, earlier *history.Poll, b *activity, later *history.Poll) *history.Step {
	if a == b {
		return nil
	}
	own := b.during(later)
	if len(own) == 0 {
		return nil
	}
	for _, step := range a.during(earlier) {
		if step.ID > own[0].ID {
			return step
		}
	}
	return nil
}

// during are the node's commits between the begin of a read and that of its
// next one.
func (a *activity) during(p *history.Poll) []*history.Step {
	from := p.Begin
	to := from.Add(1 << 62)
	if i, _ := slices.BinarySearchFunc(a.polls, from.Add(1), byBegin); i < len(a.polls) {
		to = a.polls[i].Begin
	}
	// Steps are in the order of their commits, and so, of one node, of time.
	first, _ := slices.BinarySearchFunc(a.steps, from, byTime)
	last, _ := slices.BinarySearchFunc(a.steps, to, byTime)
	return a.steps[first:max(first, last)]
}

func byBegin(p *history.Poll, at time.Time) int { return p.Begin.Compare(at) }
func byTime(s *history.Step, at time.Time) int  { return s.At.Compare(at) }
