package schedule

import (
	"context"
	"time"
)

// Aligned is the schedule of an interval under a clock that a test sets.
type Aligned struct {
	aligned
}

// NewAligned returns the schedule of an interval.
func NewAligned(interval time.Duration) Aligned {
	return Aligned{newAligned(newClock(), Type{Interval: interval})}
}

// Ahead sets how far the database's clock is ahead.
func (a Aligned) Ahead(d time.Duration) {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	a.clock.offset = d
}

// Serves returns the tick that a job serves which fires at that time.
func (a Aligned) Serves(at time.Time) time.Time {
	return tick(a.typ.serves(at.Add(a.clock.ahead())), a.typ.Interval)
}

// ShutGocronDown ends what Stop had to leave running beside a hung poll.
func (s *Scheduler) ShutGocronDown() { _ = s.endJobs(context.Background()) }
