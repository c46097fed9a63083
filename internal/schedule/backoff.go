package schedule

import "time"

// The longest backoff of an observer that keeps failing: 20 intervals, or
// 10 minutes if that is less, but never below the interval itself.
const (
	maxBackoffIntervals = 20
	maxBackoff          = 10 * time.Minute
)

// backoff returns the time from the turn of the last failure to the next try: 1, 2,
// 4 … intervals.
func backoff(failures int, interval time.Duration) time.Duration {
	longest := max(interval, min(maxBackoffIntervals*interval, maxBackoff))
	d := interval
	for range failures - 1 {
		if d *= 2; d >= longest {
			return longest
		}
	}
	return d
}
