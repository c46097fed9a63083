//go:build !linux

package web

import "syscall"

// closeToOthers leaves the mode to what follows: a socket has none here before
// it has a name. For a moment it has the one that the umask gives it.
func closeToOthers(_, _ string, _ syscall.RawConn) error { return nil }
