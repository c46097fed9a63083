package servertest

import "syscall"

// DieWithParent has the kernel send a signal to a child process when the thread that
// started it ends.
func DieWithParent(attributes *syscall.SysProcAttr, onDeath syscall.Signal) {
	attributes.Pdeathsig = onDeath
}
