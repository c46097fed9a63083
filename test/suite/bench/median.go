package main

import (
	"cmp"
	"slices"
	"time"
)

// quantile of values that need not be sorted; zero of none.
func quantile[T cmp.Ordered](values []T, q float64) T {
	var zero T
	if len(values) == 0 {
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func median[T cmp.Ordered](values []T) T { return quantile(values, 0.5) }

// medianOf is the median of a property.
func medianOf[E any, T cmp.Ordered](all []E, property func(E) T) T {
	values := make([]T, len(all))
	for i, one := range all {
		values[i] = property(one)
	}
	return median(values)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ratioOf is the median over the rounds of ours divided by theirs: what
// disturbs a round disturbs both of its sides.
func ratioOf[E any](ours, theirs []E, property func(E) float64) float64 {
	ratios := make([]float64, 0, len(ours))
	for i := range min(len(ours), len(theirs)) {
		ratios = append(ratios, property(ours[i])/property(theirs[i]))
	}
	return median(ratios)
}
