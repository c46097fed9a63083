// Package fn has small functions that the standard library lacks.
package fn

import (
	"cmp"
	"slices"
	"time"
)

// Each returns what f makes of each value; never nil.
func Each[A, B any](values []A, f func(A) B) []B {
	made := make([]B, len(values))
	for i, value := range values {
		made[i] = f(value)
	}
	return made
}

// Only returns the values that are wanted.
func Only[T any](all []T, wanted func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !wanted(one) })
}

// Find returns the first value that is wanted, and false where none is.
func Find[T any](all []T, wanted func(T) bool) (found T, ok bool) {
	if i := slices.IndexFunc(all, wanted); i >= 0 {
		return all[i], true
	}
	return found, false
}

// Distinct sorts the values, and returns each once.
func Distinct[T cmp.Ordered](all []T) []T {
	slices.Sort(all)
	return slices.Compact(all)
}

// By returns the values by their keys: of several with one key the last.
func By[K comparable, T any](all []T, key func(T) K) map[K]T {
	by := make(map[K]T, len(all))
	for _, one := range all {
		by[key(one)] = one
	}
	return by
}

// Group returns the values that entry has by their keys, in the order of all.
func Group[T any, K comparable, V any](all []T, entry func(T) (K, V)) map[K][]V {
	groups := make(map[K][]V)
	for _, one := range all {
		key, value := entry(one)
		groups[key] = append(groups[key], value)
	}
	return groups
}

// Set returns a map that has true for each of the values.
func Set[T comparable](all []T) map[T]bool {
	set := make(map[T]bool, len(all))
	for _, one := range all {
		set[one] = true
	}
	return set
}

// Indexes returns 0 to n-1.
func Indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
