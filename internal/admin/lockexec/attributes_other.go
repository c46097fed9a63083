//go:build !linux

package lockexec

import "syscall"

// attributes of the command's process: a process group of its own, if so. Its parent's
// death is not seen here.
func attributes(group bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: group} }
