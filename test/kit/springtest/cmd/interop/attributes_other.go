//go:build !linux

package main

import "syscall"

// attributes keep Ctrl-C from a child, which its context ends.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
