package check

import (
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// goneFloor and maxGone, in percent, are how many rows may go in one poll
// without an operator's word, as observerd ships.
const (
	goneFloor = 10
	maxGone   = 20
)

// believed finds polls in which more rows were gone than may be, and than an
// operator had accepted. What was accepted is used up by each row that goes, and
// what one poll leaves to the next counts with it.
func (c *checker) believed(s *stream) {
	if s.Mode != history.ModeSnapshot || len(c.run.Polls) == 0 {
		return // Without reads the run is void.
	}
	type reading struct {
		node  string
		began time.Time
	}
	var poll reading
	var live, gone, may, accepted int64
	begun, events := s.begun(), s.events
	for _, step := range s.steps {
		if act := s.acted[step.Xid]; act != nil && step.Node == "" {
			switch act.Action {
			case "accept":
				accepted = step.Accepted
			case "reset":
				accepted = 0
				if act.Detail == "forget" {
					live = 0
				}
			}
			continue
		}
		began, _ := lastBefore(begun[step.Node], step.At.Add(logPrecision))
		if now := (reading{step.Node, began}); now != poll && !s.leftOver[step] {
			poll, gone, may = now, 0, max(goneFloor, live*maxGone/100, accepted)
		}
		before := gone
		for ; len(events) > 0 && events[0].Seq <= step.NewSeq; events = events[1:] {
			switch events[0].Change {
			case changeNew:
				live++
			case changeGone:
				live--
				gone++
			}
		}
		accepted = max(0, accepted-(gone-before))
		if gone > may && before <= may {
			c.blameStep(MassGone, s, step, "%s found more than %d rows gone in one poll", step.Node, may)
		}
	}
}
