package pgtest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// removeSegment frees the few bytes of System V shared memory that a server
// keeps as a proof of life and that kill -9 leaves in the kernel for ever.
func removeSegment(data string) error {
	lines := postmasterLines(data)
	if len(lines) < 7 {
		return nil // It stopped in order, and freed it itself.
	}
	fields := strings.Fields(lines[6]) // The key and the id.
	if len(fields) != 2 {
		return nil
	}
	id, err := strconv.Atoi(fields[1])
	if err != nil {
		return fmt.Errorf("read the id of the shared memory: %w", err)
	}
	_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM) {
		return fmt.Errorf("free the shared memory: %w", err)
	}
	return nil
}
