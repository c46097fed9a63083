package wiring

import (
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
)

// Timed returns the type as the scheduler knows it, with what says when it and its
// observers are polled.
func Timed(t config.Type) schedule.Type {
	made := schedule.Type{Name: t.Name, Interval: t.Interval, Shift: t.Shift, NotBetween: t.NotBetween, Timings: make(map[string]schedule.Timing)}
	for _, o := range t.Observers {
		made.Timings[o.ID] = schedule.Timing{Delay: o.FixedDelay, NotBetween: o.Window()}
	}
	return made
}

// NextPoll returns when the nodes poll the observer next, see [schedule.NextPoll], and the
// distance between the starts of its polls. types are those of the configuration, which
// cost more than all else here. now is the coordination database's clock, and last what
// that has of the observer; zero for one that was never polled.
func NextPoll(cfg *config.Config, types []config.Type, o config.Observer, last turn.Stream, now time.Time) (next time.Time, interval time.Duration) {
	typ := Timed(TypeOf(cfg, o))
	shard := cfg.ShardOf(o)
	for _, t := range types {
		if t.Name == shard {
			typ.Shift = t.Shift // Of a type among its peers.
		}
	}
	return schedule.NextPoll(typ, o.ID, last, now), max(typ.Interval, o.FixedDelay)
}
