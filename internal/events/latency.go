package events

import "time"

// Changed returns when the row changed, by its own timestamp. It reports false where that
// does not say how late the event is: for a row of before the stream, a row that is gone,
// and a timestamp at midnight of the source's zone, which is a date without a time of day
// (one in 86,400 others is left out with it).
func (e *Event) Changed(zone *time.Location) (at time.Time, ok bool) {
	if e.Time.IsZero() || e.Snapshot || e.Change == ChangeGone {
		return time.Time{}, false
	}
	local := e.Time.In(zone)
	hour, minute, second := local.Clock()
	return e.Time, hour != 0 || minute != 0 || second != 0 || local.Nanosecond() != 0
}

// ahead is how far a row's timestamp may lie ahead of the clock with which it is compared
// and count as present: the clocks of two hosts differ a little.
const ahead = time.Minute

// Latency returns how long before that time the row changed, see [Event.Changed]. It
// reports false for a row in the future too, such as one with a due date.
func (e *Event) Latency(zone *time.Location, now time.Time) (time.Duration, bool) {
	changed, ok := e.Changed(zone)
	if !ok || changed.Sub(now) > ahead {
		return 0, false
	}
	return max(0, now.Sub(changed)), true
}

// LatencyBuckets are those of the histograms of latencies, in seconds: from a row that is
// polled at once to one that waited for a day.
func LatencyBuckets() []float64 {
	return []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600, 14400, 86400}
}
