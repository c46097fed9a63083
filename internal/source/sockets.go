package source

import (
	"errors"
	"net"
	"sync"
	"syscall"
)

// Sockets are the connections of one source, which can be closed under a driver that
// would wait for its server: to say good-bye, or to read what is left of a result. The
// zero value has none.
type Sockets struct {
	mu     sync.Mutex
	open   map[*Socket]bool
	closed bool
}

// Socket is a connection of a source.
type Socket struct {
	net.Conn
	of *Sockets
}

// Add takes a connection in. It fails, and closes it, after CloseAll.
func (s *Sockets) Add(conn net.Conn) (*Socket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	if s.open == nil {
		s.open = make(map[*Socket]bool)
	}
	socket := &Socket{conn, s}
	s.open[socket] = true
	return socket, nil
}

// CloseAll closes all connections, and those that are yet to come.
func (s *Sockets) CloseAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for socket := range s.open {
		_ = socket.Conn.Close()
	}
}

// Close implements [net.Conn].
func (s *Socket) Close() error {
	s.of.mu.Lock()
	delete(s.of.open, s)
	s.of.mu.Unlock()
	return s.Conn.Close()
}

// SyscallConn lets a driver see whether the server has closed a connection that was
// idle, before a statement is lost on it.
func (s *Socket) SyscallConn() (syscall.RawConn, error) {
	conn, ok := s.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return conn.SyscallConn()
}
