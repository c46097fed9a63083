//go:build !linux

package main

import "syscall"

// dieTogether asks for nothing: only Linux can end a child with its parent.
func dieTogether() *syscall.SysProcAttr { return nil }
