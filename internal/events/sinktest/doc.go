// Package sinktest is the contract of events.Sink as a suite of tests that every
// kind of sink runs.
package sinktest
