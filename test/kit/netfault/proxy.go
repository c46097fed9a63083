// Package netfault is a TCP proxy that breaks connections, for tests: at the
// moment that matters ([Fault]: after a request was sent and before its answer,
// or long before the request arrives), or all of them at once, as networks do
// ([Impairment], [Proxy.Reset], [Proxy.HalfOpen]). It counts what really happened.
package netfault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
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

// Proxy forwards connections to one target. Its methods may be used by several
// goroutines.
type Proxy struct {
	listener net.Listener
	done     context.CancelFunc
	ctx      context.Context //nolint:containedctx // It is the proxy's own life.
	work     sync.WaitGroup
	count    counters

	mu         sync.Mutex
	target     string
	links      map[*link]bool
	refuse     bool
	inspect    func(request []byte) Fault
	impairment Impairment
	// changed is closed, and made anew, when the impairment changes.
	changed chan struct{}
}

// Start runs a proxy before the target until the test ends.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := Open(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// StartBefore is Start for the server of a URL. It returns the URL that leads through
// the proxy.
func StartBefore(t testing.TB, direct string) (proxied string, p *Proxy) {
	t.Helper()
	proxied, p, err := OpenBefore(t.Context(), direct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return proxied, p
}

// OpenBefore is Open for the server of a URL, as [StartBefore].
func OpenBefore(ctx context.Context, direct string) (proxied string, p *Proxy, err error) {
	u, err := url.Parse(direct)
	if err != nil {
		return "", nil, errors.New("the URL of a server cannot be read") // Its text may hold a password.
	}
	if p, err = Open(ctx, u.Host); err != nil {
		return "", nil, err
	}
	u.Host = p.Addr()
	return u.String(), p, nil
}

// Move leads connections that come from now on to another target, as a name does that was given
// to another host: those that stand stay where they are.
func (p *Proxy) Move(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

func (p *Proxy) leadsTo() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// Open runs a proxy before the target, a host and a port. The caller must Close
// it; ctx bounds only the start.
func Open(ctx context.Context, target string) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen before %s: %w", target, err)
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &Proxy{
		target: target, listener: listener, links: map[*link]bool{}, ctx: life, done: cancel, changed: make(chan struct{}),
	}
	p.work.Go(p.accept)
	return p, nil
}

// Close ends all connections and waits for what serves them.
func (p *Proxy) Close() {
	p.done()
	_ = p.listener.Close()
	p.Cut()
	p.work.Wait()
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
func (p *Proxy) Cut() { p.each(func(l *link) { l.cut(false) }) }

// Reset ends all present connections as a host does that has forgotten them:
// both ends are told by a reset, and what was on its way is lost.
func (p *Proxy) Reset() { p.each(func(l *link) { l.cut(true) }) }

// HalfOpen ends the server's side of all present connections and leaves the
// client's side open: whoever writes there gets neither an answer nor an error.
func (p *Proxy) HalfOpen() { p.each((*link).halve) }

func (p *Proxy) each(do func(*link)) {
	p.mu.Lock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	p.mu.Unlock()
	for _, l := range links {
		do(l)
	}
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
	l := &link{proxy: p, client: client, over: make(chan struct{})}
	if !p.register(l) {
		p.count.refused.Add(1)
		return
	}
	defer p.forget(l)
	p.count.connections.Add(1)
	if !l.passable() {
		return
	}
	server, err := new(net.Dialer).DialContext(p.ctx, "tcp", p.leadsTo())
	if err != nil {
		return
	}
	defer server.Close()
	if !l.connected(server) {
		return
	}
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		l.answers()
	}()
	l.requests()
	_ = server.Close()
	<-answers
}

// register makes a link known to those who end links, unless none is welcome.
func (p *Proxy) register(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse || p.ctx.Err() != nil {
		return false
	}
	p.links[l] = true
	return true
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
