//go:build !linux

package goora

import "syscall"

// userTimeout does nothing where there is no TCP_USER_TIMEOUT.
func userTimeout(_, _ string, _ syscall.RawConn) error { return nil }
