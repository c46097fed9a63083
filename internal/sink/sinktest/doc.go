// Package sinktest is the contract of sink.Sink as a suite of tests that every
// kind of sink runs.
package sinktest
