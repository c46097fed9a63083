//go:build !linux

package torture

import "errors"

// asleep reports whether a process was stopped by a signal. Only Linux is asked.
func asleep(int) bool { return false }

// limitFiles is for Linux alone; a disk is never full elsewhere.
func limitFiles(int, uint64) error { return errors.ErrUnsupported }
