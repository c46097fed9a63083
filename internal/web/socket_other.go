//go:build !linux

package web

import "syscall"

// closeToOthers does nothing: here a socket has no mode before it has a name. For a
// moment it has the mode that the umask gives it.
func closeToOthers(_, _ string, _ syscall.RawConn) error { return nil }
