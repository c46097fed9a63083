package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// grace is how long what a command has left behind may take to end by itself, as servers
// do whose tests have ended.
const grace = 2 * time.Second

// adopt makes this process the parent of what its command leaves behind, and has the kernel
// send it SIGTERM when its own parent ends: make, at SIGTERM, ends its shell, and that
// passes nothing on.
func adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // Only very old kernels cannot.
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0)
}

// interrupt does to a command and all that it has started what Ctrl-C does: `go test`
// passes no signal on to the tests.
func interrupt(pid int) {
	for _, member := range append(descendants(pid), pid) {
		_ = syscall.Kill(member, syscall.SIGINT) // It may just have ended.
	}
}

// endOrphans waits for all children of this process and kills those that outlive the grace.
func endOrphans() {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for began := time.Now(); time.Since(began) < patience; <-ticker.C {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if err != nil { // There are none any more.
				return
			}
			if pid == 0 {
				break
			}
		}
		if time.Since(began) > grace {
			for _, pid := range descendants(os.Getpid()) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// descendants are the processes that a process has started, and those that they have.
func descendants(of int) (found []int) {
	children := make(map[int][]int)
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // The pattern is well formed.
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // It has ended.
		}
		// The name, in brackets, may have brackets and blanks.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		pid, pidErr := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if len(fields) < 2 || pidErr != nil {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	for next := children[of]; len(next) > 0; next = next[1:] {
		found = append(found, next[0])
		next = append(next, children[next[0]]...)
	}
	return found
}
