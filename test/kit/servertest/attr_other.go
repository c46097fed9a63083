//go:build !linux

package servertest

import "syscall"

// Attributes of a child process. Only Linux can end it with its parent; on
// other systems a killed test leaves its server to be stopped by hand.
func (a Account) Attributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.Credential, Setpgid: true}
}
