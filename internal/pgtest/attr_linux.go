package pgtest

import "syscall"

// attributes of a child process: whom it runs as, and the signal that the
// kernel sends to it when the thread that started it ends. A process group of
// its own keeps Ctrl-C, which ends the tests, from reaching the server first.
func (a account) attributes(onDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential, Pdeathsig: onDeath, Setpgid: true}
}
