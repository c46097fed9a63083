package daemon

import "syscall"

// dieWithParent has the kernel kill a process whose parent has died.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
