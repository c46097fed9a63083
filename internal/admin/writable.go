package admin

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkWritable asks the kernel whether this user may write a file, or make files in
// a folder. Only a refusal is an error: a disk that is full or gone is waited
// for elsewhere.
func checkWritable(path string, folder bool) error {
	mode := uint32(unix.W_OK)
	if folder {
		mode |= unix.X_OK
	}
	err := unix.Access(path, mode)
	for _, refusal := range []error{syscall.EACCES, syscall.EPERM, syscall.EROFS} {
		if errors.Is(err, refusal) {
			return err
		}
	}
	return nil
}
