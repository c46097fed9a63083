package schedule

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

// result is the result of one poll of an observer.
type result struct {
	outcome turn.Outcome
	stats   observer.Stats
}

// results are the results of a turn. The zero value is ready.
type results struct {
	observers int // that are polled, some of them more than once

	mu  sync.Mutex
	all []result
}

func (s *results) add(r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, r)
}

// severity orders outcomes: that of a turn is the worst of its polls.
func severity(o turn.Outcome) int {
	return slices.Index([]turn.Outcome{turn.OK, abandoned, turn.Conflict, turn.Outdated, turn.Unreachable, turn.Error, turn.Lost, turn.Fenced}, o)
}

// outcome returns the worst of the observers' outcomes; OK when none was polled.
func (s *results) outcome() turn.Outcome {
	outcomes := append(fn.Each(s.all, func(r result) turn.Outcome { return r.outcome }), turn.OK)
	return slices.MaxFunc(outcomes, func(a, b turn.Outcome) int { return cmp.Compare(severity(a), severity(b)) })
}

// complete reports whether each observer has had its poll, with success or not, and
// none is left to another node.
func (s *results) complete() bool {
	ends := []turn.Outcome{turn.OK, turn.Error, turn.Conflict}
	return !slices.ContainsFunc(s.all, func(p result) bool { return !slices.Contains(ends, p.outcome) })
}

// report logs and counts the type's poll, and notes whether its sources were reached.
func (s *results) report(r *run, took time.Duration) {
	var stats observer.Stats
	unreachable := false
	found := tally{polls: int64(len(s.all))}
	for _, p := range s.all {
		stats.Rows += p.stats.Rows
		stats.Events += p.stats.Events
		stats.Poison += p.stats.Poison
		if p.outcome != turn.OK && p.outcome != abandoned || p.stats.Poison > 0 {
			found.errors++
		}
		unreachable = unreachable || p.outcome == turn.Unreachable
	}
	if len(s.all) == 0 {
		r.log.Debug("No observer of the type is to be polled", "tick", r.at)
		return
	}
	outcome := s.outcome()
	if counted := countedAs(outcome); counted != "" {
		r.metrics.polls.WithLabelValues(r.typ.Name, string(counted)).Inc()
		r.metrics.polling.WithLabelValues(r.typ.Name).Observe(took.Seconds())
	}
	r.membership.reached(r.typ, !unreachable)
	found.events = stats.Events
	r.log.Log(r.ctx, r.cycles.polled(r.at, r.typ.Name, found), "Completed polling", "tick", r.at, "outcome", string(outcome), "observers", s.observers, "polls", len(s.all),
		"rows", stats.Rows, "events", stats.Events, "poison", stats.Poison, "duration", took)
}

// countedAs returns the outcome as the metric of polls counts it; empty: not at all.
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
