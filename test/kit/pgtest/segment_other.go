//go:build !linux

package pgtest

// removeSegment is needed on Linux alone, where tests kill servers with -9.
func removeSegment(string) error { return nil }
