//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalHeight is in lines; 0 where it is unknown.
func terminalHeight(terminal *os.File) (lines int) {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
			lines = int(size.Row)
		}
	})
	return lines
}
