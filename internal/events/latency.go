package events

import "time"

// ahead is how far a row's timestamp may lie ahead of the clock with which it is compared
// and count as present: the clocks of two hosts differ a little.
const ahead = time.Minute

// Latency returns how long before that time the row changed, by its own timestamp. It
// reports false where that does not say how late the event is: for a row of before the
// stream, a row that is gone, one in the future, such as one with a due date, and a
// timestamp at midnight of the source's zone, which is a date without a time of day (one
// in 86,400 others is left out with it).
func (e *Event) Latency(zone *time.Location, now time.Time) (time.Duration, bool) {
	if e.Time.IsZero() || e.Snapshot || e.Change == ChangeGone || e.Time.Sub(now) > ahead {
		return 0, false
	}
	local := e.Time.In(zone)
	if hour, minute, second := local.Clock(); hour == 0 && minute == 0 && second == 0 && local.Nanosecond() == 0 {
		return 0, false
	}
	return max(0, now.Sub(e.Time)), true
}

// LatencyBuckets are those of the histograms of latencies, in seconds: from a row that is
// polled at once to one that waited for a day.
func LatencyBuckets() []float64 {
	return []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600, 14400, 86400}
}
