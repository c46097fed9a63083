package web

import (
	"net"
	"sync"
)

// limited is a TCP listener with so many connections at a time. It is not that
// of x/net/netutil, whose connections cannot be closed for writing alone: a
// client whose request is refused unread would often see a reset in the place of
// the answer.
type limited struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	close  func() error
}

func newLimited(l net.Listener, most int) *limited {
	closed := make(chan struct{})
	return &limited{l, make(chan struct{}, most), closed, sync.OnceValue(func() error {
		close(closed)
		return l.Close()
	})}
}

// Accept waits for a place, and then for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	leave := sync.OnceFunc(func() { <-l.places })
	tcp, ok := conn.(*net.TCPConn)
	if err != nil || !ok {
		leave()
		return conn, err
	}
	return placed{tcp, leave}, nil
}

// Close may be called again, and then returns what it did at first.
func (l *limited) Close() error { return l.close() }

// placed gives its place back when it is closed.
type placed struct {
	*net.TCPConn
	leave func()
}

// Close closes it in both directions.
func (c placed) Close() error {
	defer c.leave()
	return c.TCPConn.Close()
}
