package main

import "syscall"

// dieTogether ends the command when pgtest is killed, since its database ends
// at the same moment.
func dieTogether() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
