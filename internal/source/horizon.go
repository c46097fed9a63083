package source

import (
	"cmp"
	"time"
)

// ClockOverlap returns how far the horizon stays behind the clock where nothing better
// than that is known: a minute, unless another time is configured.
func ClockOverlap(configured time.Duration) time.Duration {
	return cmp.Or(max(configured, 0), time.Minute)
}

// Earlier returns the earlier of two instants, the second of which may be zero,
// for none.
func Earlier(t, other time.Time) time.Time {
	if !other.IsZero() && other.Before(t) {
		return other
	}
	return t
}

// OpenSince returns the horizon of a source that shows its open transactions,
// and the earliest timestamp that may still be written, which is that of
// Horizon.Earliest in package observer. now is the source's clock, read before
// it was asked for them, and oldest the beginning of the oldest; zero means that
// none is open. A transaction may show up to margin later than it has begun, and
// may have begun up to margin before the time that it shows. The horizon stays
// behind the clock by overlap where that is longer. Where only some of them can
// be seen, overlap is that for the others, and a replica's delay is taken off now.
func OpenSince(now, oldest time.Time, margin, overlap time.Duration) (horizon, earliest time.Time) {
	horizon = now.Add(-max(margin, overlap))
	if oldest.IsZero() {
		return horizon, horizon
	}
	return Earlier(horizon, oldest.Add(-margin)), Earlier(horizon, oldest)
}
