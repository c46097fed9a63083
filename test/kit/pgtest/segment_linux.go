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
	key, keyErr := strconv.ParseUint(fields[0], 10, 64)
	id, idErr := strconv.Atoi(fields[1])
	if err := errors.Join(keyErr, idErr); err != nil {
		return fmt.Errorf("read the id of the shared memory: %w", err)
	}
	// Ids begin anew when the machine starts: this one may be another server's.
	var segment unix.SysvShmDesc
	_, err := unix.SysvShmCtl(id, unix.IPC_STAT, &segment)
	if err == nil && segment.Perm.Key == int32(key) { //nolint:gosec // It was an int32 before it was written.
		_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM) && !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("free the shared memory: %w", err)
	}
	return nil
}
