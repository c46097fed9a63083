package schedule

import "time"

// The ticks of an interval are its multiples since 1970 on the database's
// clock, numbered in that order.

// slack returns how long before a tick a job may fire and still serve it. The offset
// between two clocks is never known exactly, so jobs fire a little early or late; a
// late one has the whole interval.
func slack(interval time.Duration) time.Duration { return min(interval/4, time.Second) }

// tick returns the time of the tick of that number.
func tick(n int64, interval time.Duration) time.Time {
	return time.Unix(0, n*int64(interval)).UTC()
}

// serves returns the number of the tick that the type's job serves at the given time:
// each tick is served from its shift to the shift of the next.
func (t Type) serves(now time.Time) int64 {
	return now.Add(slack(t.Interval)-t.Shift).UnixNano() / int64(t.Interval)
}

// due returns when the type fires for the tick of that number.
func (t Type) due(n int64) time.Time { return tick(n, t.Interval).Add(t.Shift) }
