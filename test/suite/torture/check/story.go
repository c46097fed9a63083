package check

import "github.com/observerd/observerd/test/suite/torture/history"

// story finds rows whose events do not tell one story: the versions count up
// from 1, a row is new before it changes, and gone only when it was there.
func (c *checker) story(s *stream) {
	for _, key := range s.keys {
		for events := range s.epochs(s.rows[key]) {
			live, version := false, int64(0)
			for _, e := range events {
				if e.Version > version+1 {
					c.blameEvent(Gap, s, e, "it has version %d and follows version %d", e.Version, version)
				}
				if !follows(s.Mode, live, e.Change) {
					c.blameEvent(WrongChange, s, e, "%q of a row that the events before it say %s", e.Change, presence(live))
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
