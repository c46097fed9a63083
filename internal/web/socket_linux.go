package web

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// closeToOthers gives the socket its mode before it has a name. Linux makes the
// file with the mode of the descriptor, less the umask, so that there is no
// moment in which others could connect.
func closeToOthers(_, _ string, c syscall.RawConn) error {
	var chmod error
	err := c.Control(func(fd uintptr) { chmod = unix.Fchmod(int(fd), ownerOnly) })
	return errors.Join(err, chmod)
}
