package mysql

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
)

// sockets are the connections of a source. The driver reads what is left of a
// result before it lets go of a connection, from a server that may be gone; a
// socket that is closed under it spares both sides that.
type sockets struct {
	mu     sync.Mutex
	open   map[*socket]bool
	closed bool
}

// socket is a connection that its source knows.
type socket struct {
	net.Conn
	of *sockets
}

// slot is where dial leaves the socket that it has opened, for the one who
// called for a connection.
type slot struct{ socket *socket }

type slotKey struct{}

func (s *sockets) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{KeepAlive: keepAlive}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	known := &socket{conn, s}
	if slot, ok := ctx.Value(slotKey{}).(*slot); ok {
		slot.socket = known
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	s.open[known] = true
	return known, nil
}

// SyscallConn lets the driver see whether the server has closed a connection
// that lay idle, before a statement is lost on it.
func (s *socket) SyscallConn() (syscall.RawConn, error) {
	conn, ok := s.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return conn.SyscallConn()
}

// Close implements net.Conn.
func (s *socket) Close() error {
	s.of.mu.Lock()
	delete(s.of.open, s)
	s.of.mu.Unlock()
	return s.Conn.Close()
}

// close refuses further connections and ends those that are left, of reads
// that nobody has closed.
func (s *sockets) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.open {
		_ = conn.Conn.Close()
	}
}
