package config

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// statFS asks the kernel for the kind of file system that holds a path.
func statFS(path string) (uint32, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, fmt.Errorf("stat file system: %w", err)
	}
	return uint32(s.Type), nil // The numbers have 32 bits; on some machines the type has more.
}
