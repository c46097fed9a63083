package check

import (
	"fmt"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// lost finds rows without the event that the log owes them once the cluster is
// quiet. What was replaced or deleted between two polls may be missing.
func (c *checker) lost(s *stream) {
	for _, key := range s.keys {
		r := s.rows[key]
		if len(r.writes) == 0 {
			continue
		}
		last, events := r.last(), s.current(r)
		if last.Gone && (len(events) == 0 || s.Mode != history.ModeSnapshot) {
			continue // It vanished before it was seen, or nobody looks for what is gone.
		}
		c.report.Counts[Owed]++
		if missing := s.missing(last, events); missing != "" {
			c.blame(Lost, s.Name, key, last.At, "%s", missing)
		}
	}
}

// missing says what the events of a row lack; empty for nothing.
func (s *stream) missing(last *history.Write, events []*history.Event) string {
	if len(events) == 0 {
		return fmt.Sprintf("the row has no event; its last version is %d", last.N)
	}
	end := events[len(events)-1]
	switch {
	case s.Mode == history.ModeNew:
		return ""
	case last.Gone && end.Change != changeGone:
		return fmt.Sprintf("the row is gone since version %d, its last event is of %d", last.N, end.N)
	case !last.Gone && s.Mode == history.ModeSnapshot && end.N != last.N:
		return fmt.Sprintf("the last version is %d, the last event is of %d", last.N, end.N)
	case !last.Gone && !told(events, last.N):
		return fmt.Sprintf("no event has the last version %d; the last event is of %d", last.N, end.N)
	}
	return ""
}

func told(events []*history.Event, n int64) bool {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].N == n {
			return true
		}
	}
	return false
}
