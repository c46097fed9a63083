package main

import (
	"context"
	"net"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// listener is the number of the process that listens on a Unix socket, in the
// numbers of this one: 0 where it has none, being in another namespace. It is not
// known of what is no Unix socket.
func (p place) listener(ctx context.Context) (pid int, known bool) {
	if p.network != "unix" {
		return 0, false
	}
	conn, err := new(net.Dialer).DialContext(ctx, p.network, p.address)
	if err != nil {
		return 0, false // No process listens, which the request itself finds out.
	}
	defer func() { _ = conn.Close() }() // It was only a look.
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid, known = int(cred.Pid), true
		}
	})
	return pid, known && err == nil
}

// processBegan is when a process of this host began, in seconds since 1970, as its
// metrics say it. It is not known of one that may not be looked at.
func processBegan(pid int) (seconds float64, known bool) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, false
	}
	stat, err := process.Stat()
	if err != nil {
		return 0, false
	}
	seconds, err = stat.StartTime()
	return seconds, err == nil
}
