//go:build unix

package sqlite

import (
	"fmt"
	"os"
	"syscall"
)

// fileIdentity is the number of the file alone. That of its device is another
// on each node and after each start of a machine, and would have the same file
// read again from its beginning.
func fileIdentity(info os.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("file:%d", stat.Ino)
}
