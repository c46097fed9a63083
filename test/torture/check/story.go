package check

import (
	"fmt"

	"github.com/observerd/observerd/test/torture/history"
)

// story finds rows whose events do not tell one story: the versions count up
// from 1, a row is new before it changes, and gone only when it was there.
func (c *checker) story(s *stream) {
	for _, key := range s.keys {
		for events := range s.epochs(s.rows[key]) {
			live, version := false, int64(0)
			for _, e := range events {
				v := Violation{Subject: s.Name, Key: key, IDs: []string{eventID(e)}, From: s.when(e.Seq)}
				if e.Version > version+1 {
					v.Kind, v.What = Gap, fmt.Sprintf("an event with version %d follows version %d", e.Version, version)
					c.blame(v)
				}
				if !follows(s.Mode, live, e.Change) {
					v.Kind, v.What = WrongChange, fmt.Sprintf("%q of a row that the events before it say %s", e.Change, presence(live))
					c.blame(v)
				}
				live, version = e.Change != changeGone, max(version, e.Version)
			}
		}
	}
}

// follows reports whether a change may follow when the row is, or is not, there.
func follows(mode history.Mode, live bool, change string) bool {
	switch change {
	case changeNew:
		return !live
	case changeChanged:
		return live && mode != history.ModeNew
	case changeGone:
		return live && mode == history.ModeSnapshot
	}
	return false
}

func presence(live bool) string {
	if live {
		return "is there"
	}
	return "is not there"
}

// sequence finds numbers of the stream that no event has, or two have.
func (c *checker) sequence(s *stream) {
	var last int64
	for _, e := range s.events {
		kind := Gap
		if e.Seq <= last {
			kind = Duplicated
		}
		if e.Seq != last+1 {
			c.blame(Violation{
				Kind: kind, Subject: s.Name, What: fmt.Sprintf("sequence %d follows %d", e.Seq, last),
				IDs: []string{eventID(e)}, From: s.when(last), To: s.when(e.Seq),
			})
		}
		last = e.Seq
	}
	if n := len(s.steps); n > 0 && s.steps[n-1].NewSeq > last {
		end := s.steps[n-1]
		c.blame(Violation{
			Kind: Gap, Subject: s.Name, What: fmt.Sprintf("the log ends with %d, the cursor says %d", last, end.NewSeq),
			IDs: []string{stepID(end)}, From: end.At,
		})
	}
}
