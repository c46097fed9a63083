package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// peakMemory is the high-water mark of this process. It is not rusage's
// ru_maxrss, which Linux lets a child inherit from the process that forked it.
func peakMemory() (int64, error) { return memoryOf(os.Getpid(), "VmHWM") }

// memoryOf is a field of /proc/PID/status, in bytes.
func memoryOf(pid int, field string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("the kernel does not tell %s of a process", field)
}

// cpuTime is what this process has used so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// startProfile begins the profiles of this process, if there is a folder for
// them; the function that it returns writes them.
func startProfile(folder, name string) (finish func() error, err error) {
	if folder == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	cpu, err := os.Create(filepath.Join(folder, name+".cpu.prof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		if err := cpu.Close(); err != nil {
			return err
		}
		return writeHeap(filepath.Join(folder, name+".heap.prof"))
	}, nil
}

func writeHeap(path string) error {
	heap, err := os.Create(path)
	if err != nil {
		return err
	}
	runtime.GC()
	if err := pprof.Lookup("allocs").WriteTo(heap, 0); err != nil {
		return err
	}
	return heap.Close()
}
