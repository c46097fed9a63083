package goora

import (
	"net"
	"syscall"
	"testing"
)

func TestDeadPeersAreNoticed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	a, ctx := watched(t)
	conn, err := dialer{}.DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer a.end()
	tcp, ok := conn.(*socket).Conn.(*net.TCPConn)
	if !ok {
		t.Fatalf("%T", conn)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for option, want := range map[int]int{
		tcpUserTimeout: 60_000, syscall.TCP_KEEPIDLE: 30, syscall.TCP_KEEPINTVL: 10, syscall.TCP_KEEPCNT: 3,
	} {
		var got int
		err = raw.Control(func(fd uintptr) { got, _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, option) })
		if err != nil || got != want {
			t.Errorf("option %#x is %d, want %d: %v", option, got, want, err)
		}
	}
}
