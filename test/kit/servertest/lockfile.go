package servertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// tryLockFile opens path and locks it for this process, or fails at once.
func tryLockFile(path string) (*os.File, error) { return tryLock(path, os.O_RDWR|os.O_CREATE) }

func tryLock(path string, flags int) (*os.File, error) {
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return file, nil
}

// lockFile waits until path is free, then locks it.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		file, err := tryLockFile(path)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return file, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
