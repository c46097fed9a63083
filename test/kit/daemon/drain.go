package daemon

import (
	"errors"
	"math"
	"os"
	"sync"
	"syscall"
)

// mostInPipe is more than a pipe holds.
const mostInPipe = 1 << 20

// drain brings what a process writes to stderr into its log. Between the two lies
// a pipe: a limit on the size of the process's files must not end its log.
type drain struct {
	pipe *os.File // the end that is read
	log  *os.File

	mu  sync.Mutex // held by whoever reads a piece and writes it into the log
	buf []byte
}

// newDrain returns the process's end of the pipe too.
func newDrain(log *os.File) (d *drain, stderr *os.File, err error) {
	pipe, stderr, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &drain{pipe: pipe, log: log, buf: make([]byte, 32<<10)}, stderr, nil
}

// run returns when nobody can write any more, and all is in the log.
func (d *drain) run() {
	if raw, err := d.pipe.SyscallConn(); err == nil {
		_ = raw.Read(func(fd uintptr) (ended bool) { return d.pour(fd, math.MaxInt) })
	}
	_ = d.pipe.Close()
}

// catchUp brings into the log what was written before the call: whoever heard of
// it in another way looks there next.
func (d *drain) catchUp() {
	if raw, err := d.pipe.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { d.pour(fd, mostInPipe) }) // A pipe that is closed is empty.
	}
}

// pour takes what is in the pipe, so many bytes at most, and does not wait for
// more; true when there will be none.
func (d *drain) pour(fd uintptr, most int) (ended bool) {
	for most > 0 {
		n, err := d.piece(int(fd)) //nolint:gosec // It is a descriptor.
		switch {
		case n > 0:
			most -= n
		case errors.Is(err, syscall.EINTR):
		default:
			return !errors.Is(err, syscall.EAGAIN)
		}
	}
	return false
}

func (d *drain) piece(fd int) (n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, err = syscall.Read(fd, d.buf); n > 0 {
		_, _ = d.log.Write(d.buf[:n]) // A log that cannot be kept must not end the process.
	}
	return n, err
}
