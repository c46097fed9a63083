//go:build !linux

package daemon

import "syscall"

// dieWithParent does nothing: only Linux can do it.
func dieWithParent(*syscall.SysProcAttr) {}
