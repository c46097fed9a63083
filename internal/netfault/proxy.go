// Package netfault is a TCP proxy for tests that breaks connections at the
// moment that matters: after a request was sent and before its answer, or long
// before the request arrives.
package netfault

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Fault is what happens to a connection because of some bytes that its client
// sends.
type Fault struct {
	// LoseAnswer lets the bytes reach the server, swallows its answer, and
	// closes the client's side then.
	LoseAnswer bool
	// Late closes the client's side at once and lets the bytes reach the
	// server this much later; 0 means no such fault.
	Late time.Duration
	// Hold keeps the bytes back until the channel is closed; nil means no such
	// fault. What follows on the connection waits behind them. When the proxy
	// stops first, they never arrive.
	Hold <-chan struct{}
}

// Proxy forwards connections to one target.
type Proxy struct {
	target   string
	listener net.Listener
	done     context.CancelFunc
	ctx      context.Context //nolint:containedctx // It is the proxy's own life.
	work     sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]bool
	refuse  bool
	inspect func(request []byte) Fault
}

// Start runs a proxy before the target until the test ends.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{target: target, listener: listener, conns: map[net.Conn]bool{}, ctx: ctx, done: cancel}
	p.work.Go(p.accept)
	t.Cleanup(p.stop)
	return p
}

// Addr is the address that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Inspect sees every piece that a client sends and decides on a fault; nil
// sees nothing.
func (p *Proxy) Inspect(f func(request []byte) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inspect = f
}

// Refuse closes all connections and refuses new ones, until it is called with
// false.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	p.refuse = refuse
	p.mu.Unlock()
	if refuse {
		p.Cut()
	}
}

// Cut closes all present connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

func (p *Proxy) stop() {
	p.done()
	_ = p.listener.Close()
	p.Cut()
	p.work.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	refuse := p.refuse
	p.mu.Unlock()
	if refuse {
		return
	}
	server, err := new(net.Dialer).DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	p.track(client, server)
	defer p.forget(client, server)
	l := &link{client: client, server: server}
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		l.answers()
	}()
	p.requests(l)
	_ = server.Close()
	<-answers
}

// link is one connection through the proxy.
type link struct {
	client, server net.Conn
	// mute swallows the next answer and closes the client's side with it.
	mute atomic.Bool
}

// answers forwards what the server sends, until one of the two is gone.
func (l *link) answers() {
	defer l.client.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buf)
		if err != nil || l.mute.Load() {
			return
		}
		if _, err := l.client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// requests forwards what the client sends, and injects faults.
func (p *Proxy) requests(l *link) {
	buf := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(buf)
		if n > 0 && !p.forward(buf[:n], l) {
			return
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) forward(request []byte, l *link) bool {
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
		_ = l.client.Close()
		select {
		case <-time.After(fault.Late):
		case <-p.ctx.Done():
		}
	}
	if fault.Hold != nil {
		select {
		case <-fault.Hold:
		case <-p.ctx.Done():
			return false
		}
	}
	_, err := l.server.Write(request)
	return err == nil
}

func (p *Proxy) track(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
}

func (p *Proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}
