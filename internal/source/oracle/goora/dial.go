package goora

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// A peer that is silently gone is noticed after idle + count * interval.
const (
	keepIdle     = 30 * time.Second
	keepInterval = 10 * time.Second
	keepCount    = 3
)

// attempt is one logon. Its dialler finds it in the context that the driver is
// given.
type attempt struct {
	ctx context.Context
	// watched is closed when the driver's watcher is under way.
	watched chan struct{}
	once    sync.Once

	mu   sync.Mutex
	last *socket
	over bool
}

func newAttempt() *attempt { return &attempt{watched: make(chan struct{})} }

// below is the context of a logon for the driver. It does not end, because the
// driver would write and close without regard to what else is going on.
func (a *attempt) below(ctx context.Context) context.Context {
	return logonContext{context.WithoutCancel(ctx), a}
}

type logonContext struct {
	context.Context
	attempt *attempt
}

type attemptKey struct{}

// Value implements [context.Context].
func (c logonContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c.attempt
	}
	return c.Context.Value(key)
}

// Done implements [context.Context]. The driver watches over a logon in a
// goroutine that takes the session's lock once before it asks this.
func (c logonContext) Done() <-chan struct{} {
	c.attempt.once.Do(func() { close(c.attempt.watched) })
	return c.Context.Done()
}

// dialer opens the sockets of a logon, one after the other where the target
// has several servers.
type dialer struct{ timeout time.Duration }

// DialContext implements the driver's interface.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return nil, errors.New("dialled outside of a logon")
	}
	if err := a.awaitWatcher(); err != nil {
		return nil, err
	}
	tcp := net.Dialer{
		Timeout: d.timeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: keepIdle, Interval: keepInterval, Count: keepCount,
		},
		Control: userTimeout,
	}
	conn, err := tcp.DialContext(a.ctx, network, address)
	if err != nil {
		return nil, err
	}
	return a.use(&socket{Conn: conn})
}

// awaitWatcher waits until the driver's watcher needs the session's lock no more.
// An acceptance that the driver cannot read makes it panic under that lock, and
// a watcher that came later would wait for it for ever.
func (a *attempt) awaitWatcher() error {
	select {
	case <-a.watched:
		return nil
	case <-a.ctx.Done():
		return a.ctx.Err()
	}
}

// use makes a socket the attempt's, in place of the one that led nowhere.
func (a *attempt) use(s *socket) (net.Conn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != nil {
		_ = a.last.Close()
	}
	if a.last = s; a.over {
		_ = s.Close()
		return nil, net.ErrClosed
	}
	return s, nil
}

// end closes what was opened, and whatever should be opened yet.
func (a *attempt) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over = true; a.last != nil {
		_ = a.last.Close()
	}
}

// socket returns the one that the logon uses; nil before the first.
func (a *attempt) socket() *socket {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}
