package goora

import (
	"net"
	"sync/atomic"
)

// socket is a connection to a listener. The driver writes whole packets, one a
// call, and reads through a buffer of its own.
type socket struct {
	net.Conn
	// written and heard count what went either way, in calls that succeeded.
	written, heard atomic.Int64
	// wide says that packets begin with a length of four bytes, as they do from
	// the handshake on where both sides are of version 12 or later.
	wide atomic.Bool
}

// Write implements [net.Conn].
func (s *socket) Write(packet []byte) (int, error) {
	if len(packet) >= headerSize {
		s.wide.Store(packet[0] == 0 && packet[1] == 0)
	}
	s.written.Add(1)
	return s.Conn.Write(packet)
}

// Read implements [net.Conn].
func (s *socket) Read(into []byte) (int, error) {
	n, err := s.Conn.Read(into)
	if n > 0 {
		s.heard.Add(1)
	}
	return n, err
}

const headerSize = 8

// interrupt asks the server to stop the call that it is at: a marker packet of
// the kind that clients send for it. It must not be written into TLS, and the
// write does not get between the parts of another packet.
func (s *socket) interrupt() {
	marker := []byte{0, 11, 0, 0, 12, 0, 0, 0, 1, 0, 3}
	if s.wide.Load() {
		marker = []byte{0, 0, 0, 11, 12, 0, 0, 0, 1, 0, 3}
	}
	// If it does not get through, the socket is closed a little later.
	_, _ = s.Conn.Write(marker)
}
