//go:build !linux

package pgtest

import "syscall"

// attributes of a child process. Only Linux can end it with its parent; on
// other systems a killed test leaves its server to be stopped by hand.
func (a account) attributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential, Setpgid: true}
}
