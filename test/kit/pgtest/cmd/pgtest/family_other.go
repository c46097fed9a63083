//go:build !linux

package main

import "syscall"

// adopt and endOrphans do nothing: only Linux gives orphans to another parent than init.
func adopt()      {}
func endOrphans() {}

// interrupt interrupts the command alone.
func interrupt(pid int) { _ = syscall.Kill(pid, syscall.SIGINT) }
