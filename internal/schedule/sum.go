package schedule

import (
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

// result is what came of one observer's poll.
type result struct {
	outcome turn.Outcome
	stats   observer.Stats
}

// unnoted says that the store would refuse a note, or shall have none.
func (r result) unnoted() bool {
	return r.outcome == turn.Lost || r.outcome == turn.Fenced || r.outcome == abandoned
}

// sum gathers the results of a turn. The zero value is ready.
type sum struct {
	observers int // that are polled, some of them more than once

	mu    sync.Mutex
	parts []result
}

func (s *sum) add(r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, r)
}

// severity orders outcomes for the type's, which is the worst.
func severity(o turn.Outcome) int {
	return slices.Index([]turn.Outcome{turn.OK, abandoned, turn.Conflict, turn.Outdated, turn.Unreachable, turn.Error, turn.Lost, turn.Fenced}, o)
}

// outcome is the worst of the observers'; OK when none was polled.
func (s *sum) outcome() turn.Outcome {
	worst := turn.OK
	for _, p := range s.parts {
		if severity(p.outcome) > severity(worst) {
			worst = p.outcome
		}
	}
	return worst
}

// complete says that each observer has had its part of the turn, well or ill,
// and none of it is left to another node.
func (s *sum) complete() bool {
	for _, p := range s.parts {
		switch p.outcome {
		case turn.OK, turn.Error, turn.Conflict:
		default:
			return false
		}
	}
	return true
}

// report tells of the type's poll, and of sources that were not reached.
func (s *sum) report(r *run, took time.Duration) {
	var stats observer.Stats
	unreachable := false
	for _, p := range s.parts {
		stats.Rows += p.stats.Rows
		stats.Events += p.stats.Events
		stats.Poison += p.stats.Poison
		unreachable = unreachable || p.outcome == turn.Unreachable
	}
	if len(s.parts) == 0 {
		r.log.Debug("No observer of the type is to be polled", "tick", r.at)
		return
	}
	outcome := s.outcome()
	if counted := countedAs(outcome); counted != "" {
		r.metrics.polls.WithLabelValues(r.typ.Name, string(counted)).Inc()
		r.metrics.polling.WithLabelValues(r.typ.Name).Observe(took.Seconds())
	}
	r.member.reached(r.typ, !unreachable)
	r.log.Info("Completed polling", "tick", r.at, "outcome", string(outcome), "observers", s.observers, "polls", len(s.parts),
		"rows", stats.Rows, "events", stats.Events, "poison", stats.Poison, "duration", took)
}

// countedAs is the outcome in the metric of polls; empty for none.
func countedAs(o turn.Outcome) turn.Outcome {
	switch o {
	case turn.Unreachable, turn.Outdated:
		return turn.Error
	case turn.Conflict:
		return turn.Fenced
	case abandoned:
		return ""
	}
	return o
}
