package check

import (
	"fmt"
	"sort"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// duplicated finds events that say again what another has said: under its id,
// of its version of the row, or with its number of the key. After a reset that
// forgot what was observed, each may come once more, under another id; and each
// version of a row once by each definition.
func (c *checker) duplicated(s *stream) {
	ids := make(map[string]*history.Event, len(s.events))
	for _, e := range s.events {
		if was := ids[e.ID]; was != nil {
			c.again(s, was, e, "an event id is there twice")
		}
		ids[e.ID] = e
	}
	for _, key := range s.keys {
		for events := range s.epochs(s.rows[key]) {
			most := events[0].N
			for i := 1; i < len(events); i++ {
				e := events[i]
				if was, what := s.repeats(events[:i], e, e.N > most); was != nil {
					c.again(s, was, e, what)
				}
				most = max(most, e.N)
			}
		}
	}
}

// repeats returns which of the events before it an event repeats, and how; nil
// for none, and for one with the same id, which was told already. fresh says
// that its version of the row is above all before it, as it should be.
func (s *stream) repeats(before []*history.Event, e *history.Event, fresh bool) (*history.Event, string) {
	was := before[len(before)-1]
	var same *history.Event
	if !fresh {
		same = ofVersion(s.alike(before, e), e.N)
	}
	switch {
	case was.ID == e.ID:
		return nil, ""
	case s.Mode == history.ModeNew:
		return was, "the key has more than one event"
	case same != nil && same.ID != e.ID:
		return same, fmt.Sprintf("version %d of the row has two events", e.N)
	case e.Version <= was.Version:
		return was, fmt.Sprintf("an event with version %d follows one with %d", e.Version, was.Version)
	}
	return nil, ""
}

// alike are those of the events before another that are of the same definition.
func (s *stream) alike(before []*history.Event, e *history.Event) []*history.Event {
	since := int64(0)
	for _, step := range s.defined {
		if step.OldSeq < e.Seq {
			since = step.OldSeq
		}
	}
	n := sort.Search(len(before), func(i int) bool { return before[i].Seq > since })
	return before[n:]
}

// ofVersion finds the last event of a version of the row.
func ofVersion(events []*history.Event, n int64) *history.Event {
	for i := len(events) - 1; i >= 0 && n > 0; i-- {
		if events[i].N == n {
			return events[i]
		}
	}
	return nil
}

func (c *checker) again(s *stream, first, second *history.Event, what string) {
	c.blameEvent(Duplicated, s, second, "%s, as of event %d", what, first.Seq)
}
