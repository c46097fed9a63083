package web

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockFolder waits until no other process makes a socket in the folder. The lock is
// on the folder itself, so that no lock file is left in it. On file systems without
// such locks it returns at once.
func lockFolder(ctx context.Context, folder string) (unlock func(), err error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return func() { _ = f.Close() }, nil // Close releases the lock.
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("another process has kept its folder locked for %v: %w", bindTimeout, context.Cause(ctx))
		}
	}
}
