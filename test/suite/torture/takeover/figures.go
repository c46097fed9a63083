package takeover

import (
	"math"
	"slices"
	"time"
)

// Figures are what a measurement has found.
type Figures struct {
	TTL, ShortTTL time.Duration
	Samples       []Sample
	// Rows is how many rows the sources had, Events how many events came of
	// them; Repeated are events of a row beyond its first.
	Rows, Events, Repeated int64
}

// Sample is one node that was struck.
type Sample struct {
	Kind Kind
	// Took is the time from the strike to the first commit of another node.
	Took time.Duration
	// Rule is the rule by which the lease was taken over, as the survivor's log
	// says: empty when it had been given back.
	Rule string
}

// of returns the times of a kind, sorted.
func (f Figures) of(kind Kind) (times []time.Duration) {
	for _, s := range f.Samples {
		if s.Kind == kind {
			times = append(times, s.Took)
		}
	}
	slices.Sort(times)
	return times
}

// Quantile returns the least of the sorted times that is not exceeded by the
// part p of them, such as 0.95; 0 when there are none.
func Quantile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// goal is what a takeover after kill -9 may take, at p95.
const goal = time.Second

// Reached says whether that goal is met.
func (f Figures) Reached() bool {
	times := f.of(Kill)
	return len(times) > 0 && Quantile(times, 0.95) < goal
}
