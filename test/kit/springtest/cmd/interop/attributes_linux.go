package main

import "syscall"

// attributes keep Ctrl-C from a child, which its context ends, and end it with
// the thread that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
