// Package simtest runs histories that rapid makes up in simulated time: what a
// process does on its way to a database passes through a [Wire], which loses,
// delays and repeats as a network does, and stops as a process does.
//
// A history is a function of the numbers that rapid draws, so a failure is
// found again by its seed and cut down to the steps that matter. The product's
// own chance (the jitter of its pauses) and the order of goroutines that wake
// at one instant are not drawn; wires give every call a latency of its own, so
// that few do.
package simtest
