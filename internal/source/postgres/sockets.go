package postgres

import (
	"context"
	"net"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// sockets are the connections of a source. The driver says good-bye to the
// server and waits for its answer, each connection for 15 seconds; a node that
// stops cannot wait that long for a server that is gone.
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

// through lets connections be known.
func (s *sockets) through(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		known := &socket{conn, s}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			_ = conn.Close()
			return nil, net.ErrClosed
		}
		s.open[known] = true
		return known, nil
	}
}

// Close implements net.Conn.
func (s *socket) Close() error {
	s.of.mu.Lock()
	delete(s.of.open, s)
	s.of.mu.Unlock()
	return s.Conn.Close()
}

// drop ends all connections without a word, and all attempts to make one.
func (s *sockets) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.open {
		_ = conn.Conn.Close()
	}
}
