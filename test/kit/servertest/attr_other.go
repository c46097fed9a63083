//go:build !linux

package servertest

import "syscall"

// DieWithParent does nothing: only Linux can do it. On other systems a killed test
// leaves its server to be stopped by hand.
func DieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
