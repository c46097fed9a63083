package sqlite

import (
	"context"
	"fmt"
	"os"
	"syscall"

	lib "modernc.org/sqlite/lib"

	"github.com/observerd/observerd/internal/observer"
)

// Identity implements [observer.Source]. SQLite has no identity of its own, so
// it is that of the file: a backup that was moved into its place is another
// one. One that was copied over it byte by byte cannot be told from a change.
func (s *Source) Identity(ctx context.Context) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	info, err := os.Stat(s.session.path)
	if err != nil {
		const code = lib.SQLITE_CANTOPEN
		return "", fault(observer.ClassUnreachable, code, s.session.unopened("read the identity", code))
	}
	return fileIdentity(info), nil
}

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
