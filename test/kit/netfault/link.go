package netfault

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

type direction int

const (
	up direction = iota // from the client to the server
	down
)

// link is one connection through the proxy.
type link struct {
	proxy  *Proxy
	client net.Conn
	// over is closed when the proxy itself ends the connection.
	over chan struct{}
	// mute swallows the next answer and closes the client's side with it.
	mute atomic.Bool
	// half says that the server's side is gone and the client is not told.
	half atomic.Bool
	// lossy says that bytes were swallowed.
	lossy atomic.Bool

	mu     sync.Mutex
	server net.Conn // nil until it is connected
	ended  bool
}

// connected reports whether the link still lives, and keeps the server's side.
func (l *link) connected(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = server
	return !l.ended
}

// cut ends the connection, by a reset if that is asked for.
func (l *link) cut(reset bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	l.proxy.count.ended.Add(1)
	close(l.over)
	for _, conn := range []net.Conn{l.client, l.server} {
		if conn != nil {
			end(conn, reset)
		}
	}
}

// halve ends the server's side alone.
func (l *link) halve() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.server == nil || l.half.Swap(true) {
		return
	}
	l.proxy.count.halved.Add(1)
	end(l.server, true)
}

func end(conn net.Conn, reset bool) {
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0) // Without it the end is an orderly one.
	}
	_ = conn.Close()
}

// answers forwards what the server sends, until one of the two is gone.
func (l *link) answers() {
	buf := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buf)
		if n > 0 && l.mute.Load() {
			l.proxy.count.answersLost.Add(1)
			break
		}
		if n > 0 && !l.carry(down, l.client, buf[:n]) {
			break
		}
		if err != nil {
			l.farewell(down)
			break
		}
	}
	if !l.half.Load() {
		_ = l.client.Close()
	}
}

// requests forwards what the client sends, and injects faults.
func (l *link) requests() {
	buf := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(buf)
		if n > 0 && !l.forward(buf[:n]) {
			return
		}
		if err != nil {
			l.farewell(up)
			return
		}
	}
}

func (l *link) forward(request []byte) bool {
	p := l.proxy
	p.mu.Lock()
	inspect := p.inspect
	p.mu.Unlock()
	var fault Fault
	if inspect != nil {
		fault = inspect(request)
	}
	if fault.LoseAnswer {
		l.mute.Store(true)
	}
	if fault.Late > 0 {
		p.count.late.Add(1)
		request = append([]byte(nil), request...)
		request = append(request, l.rest()...)
		_ = l.client.Close()
		if !l.wait(fault.Late) {
			return false
		}
	}
	if fault.Hold != nil {
		p.count.held.Add(1)
		select {
		case <-fault.Hold:
		case <-p.ctx.Done():
			return false
		}
	}
	return l.carry(up, l.server, request)
}

// quiet is after which silence a client has sent all that it had to say.
const quiet = 50 * time.Millisecond

// rest is what the client sends behind a piece without a pause: a request may
// come in several pieces.
func (l *link) rest() (rest []byte) {
	buf := make([]byte, 64<<10)
	for {
		if err := l.client.SetReadDeadline(time.Now().Add(quiet)); err != nil {
			return rest
		}
		n, err := l.client.Read(buf)
		rest = append(rest, buf[:n]...)
		if err != nil { // Mostly the deadline.
			return rest
		}
	}
}
