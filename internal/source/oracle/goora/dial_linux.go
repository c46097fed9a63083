package goora

import (
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT, which package syscall does not name.
const tcpUserTimeout = 0x12

// userTimeout bounds how long written bytes may stay unacknowledged. Without
// it the kernel goes on for a quarter of an hour, and keep-alives wait.
func userTimeout(_, _ string, raw syscall.RawConn) error {
	limit := int((keepIdle + keepCount*keepInterval) / time.Millisecond)
	// A socket that cannot have it, such as one of another kind, works without.
	return raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, limit)
	})
}
