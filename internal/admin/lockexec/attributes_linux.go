package lockexec

import "syscall"

// attributes of the command's process: a process group of its own, if so, and its end
// when this process dies.
func attributes(group bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: group, Pdeathsig: syscall.SIGKILL}
}
