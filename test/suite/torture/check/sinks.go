package check

import (
	"sort"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// sink compares the sink with the log: the same events, each once, in the order
// of their stream.
func (c *checker) sink() {
	has := make(map[*history.Event]bool) // of the log
	last := make(map[string]int64)
	for i := range c.run.Delivered {
		e := &c.run.Delivered[i]
		c.report.Counts[Delivered]++
		s := c.byName[e.Stream]
		if s == nil {
			c.blame(SinkUnexpected, e.Stream, e.Subject, time.Time{}, "event %d: nobody observes its stream", e.Seq)
			continue
		}
		logged := s.find(e)
		switch {
		case logged == nil:
			c.blameEvent(SinkUnexpected, s, e, "the log does not have it as the sink does")
			continue
		case has[logged]:
			c.blameEvent(SinkDuplicated, s, e, "it is there twice")
			continue
		case e.Seq < last[s.Name]:
			c.blameEvent(SinkReordered, s, e, "it comes after event %d", last[s.Name])
		}
		has[logged] = true
		last[s.Name] = max(last[s.Name], e.Seq)
	}
	for _, s := range c.streams {
		for _, e := range s.events {
			if !has[e] {
				c.blameEvent(SinkLost, s, e, "the log has it, the sink has not")
			}
		}
	}
}

// find is the event of the log that is the same but for the transaction, which a
// sink does not know; nil for none.
func (s *stream) find(e *history.Event) *history.Event {
	i := sort.Search(len(s.events), func(i int) bool { return s.events[i].Seq >= e.Seq })
	if i == len(s.events) {
		return nil
	}
	same := *s.events[i]
	if same.Xid = ""; same != *e {
		return nil
	}
	return s.events[i]
}
