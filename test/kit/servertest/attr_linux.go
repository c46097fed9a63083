package servertest

import "syscall"

// Attributes of a child process: whom it runs as, and the signal that the
// kernel sends to it when the thread that started it ends. A process group of
// its own keeps Ctrl-C, which ends the tests, from reaching the server first.
func (a Account) Attributes(onDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.Credential, Pdeathsig: onDeath, Setpgid: true}
}
