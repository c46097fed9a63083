package check

import (
	"time"

	"github.com/observerd/observerd/test/torture/history"
)

// Demands say what a run must have met to mean anything, and how exact its
// clocks are taken to be. A zero field means its default.
type Demands struct {
	// Counters must be above 0, by name, with or without labels; without them
	// all series of the name count together. Nil means stale commits refused,
	// unknown commits resolved, and takeovers.
	Counters []string
	// Faults are kinds of which at least one must have bitten, beside those
	// that were injected at all.
	Faults []string
	// Versions is how many versions of rows must have been committed; 0 means 1.
	Versions int
	// Settle is how long after its end a fault may still explain an overlap or
	// an early release; 0 means the TTL and 5 s more.
	Settle time.Duration
	// Tolerance is how far two instants that belong together may lie apart
	// because a server was slow between reading the clock twice; 0 means 250 ms.
	Tolerance time.Duration
	// Listed is how many violations of a kind are described; all are counted. 0
	// means 20.
	Listed int
}

// DemandsOf returns what a run demands of itself.
func DemandsOf(meta history.Meta) Demands {
	return Demands{Counters: meta.Required, Faults: meta.Planned}
}

func (d Demands) withDefaults(meta history.Meta) Demands {
	if d.Counters == nil {
		d.Counters = []string{
			"observerd_stale_commits_refused_total",
			"observerd_unknown_commits_resolved_total",
			"observerd_takeovers_total",
		}
	}
	d.Versions = orDefault(d.Versions, 1)
	d.Settle = orDefault(d.Settle, meta.TTL+5*time.Second)
	d.Tolerance = orDefault(d.Tolerance, 250*time.Millisecond)
	d.Listed = orDefault(d.Listed, 20)
	return d
}

func orDefault[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
