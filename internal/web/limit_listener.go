package web

import (
	"net"
	"sync"
)

// limitListener is a TCP listener with a limit of open connections. That of
// x/net/netutil does not do: its connections have no CloseWrite, so a client whose
// request is refused unread would often see a reset in place of the answer.
type limitListener struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	close  func() error
}

func newLimitListener(l net.Listener, limit int) *limitListener {
	closed := make(chan struct{})
	return &limitListener{l, make(chan struct{}, limit), closed, sync.OnceValue(func() error {
		close(closed)
		return l.Close()
	})}
}

// Accept waits for a free slot, and then for a connection.
func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	release := sync.OnceFunc(func() { <-l.slots })
	tcp, ok := conn.(*net.TCPConn)
	if err != nil || !ok {
		release()
		return conn, err
	}
	return limitedConn{tcp, release}, nil
}

// Close closes the listener. A later call returns the result of the first.
func (l *limitListener) Close() error { return l.close() }

// limitedConn releases its slot when it is closed.
type limitedConn struct {
	*net.TCPConn
	release func()
}

// Close closes the connection in both directions.
func (c limitedConn) Close() error {
	defer c.release()
	return c.TCPConn.Close()
}
