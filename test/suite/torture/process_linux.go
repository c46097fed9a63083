package torture

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// asleep reports whether a process was stopped by a signal.
func asleep(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The name in parentheses may hold anything; the state follows it.
	rest := text[bytes.LastIndexByte(text, ')')+1:]
	return bytes.HasPrefix(bytes.TrimSpace(rest), []byte("T"))
}

// limitFiles bounds how large the process may make a file; 0 lifts it.
func limitFiles(pid int, size uint64) error {
	if size == 0 {
		size = unix.RLIM_INFINITY
	}
	return unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}, nil)
}
