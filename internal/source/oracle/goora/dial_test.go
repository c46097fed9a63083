package goora

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// watched is a logon over which the driver watches, and the driver's context.
func watched(t *testing.T) (*attempt, context.Context) {
	a := newAttempt()
	a.ctx = t.Context()
	ctx := a.below(t.Context())
	ctx.Done()
	return a, ctx
}

func listen(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// A logon that was given up opens nothing any more.
func TestDialAfterTheEnd(t *testing.T) {
	address := listen(t)
	a, ctx := watched(t)
	a.end()
	if conn, err := (dialer{}).DialContext(ctx, "tcp", address); err == nil {
		_ = conn.Close()
		t.Error("dialled")
	}
	if _, err := (dialer{}).DialContext(t.Context(), "tcp", address); err == nil {
		t.Error("dialled outside of a logon")
	}
}

// The driver may panic under a lock as soon as somebody answers. Its watcher, which
// needs that lock once, would then wait for ever.
func TestDialAwaitsTheWatcher(t *testing.T) {
	address := listen(t)
	a := newAttempt()
	var cancel context.CancelFunc
	a.ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	ctx := a.below(t.Context())
	if _, err := (dialer{}).DialContext(ctx, "tcp", address); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("dialled before the watcher was under way: %v", err)
	}
	a.ctx = t.Context()
	defer a.end()
	ctx.Done()
	if _, err := (dialer{}).DialContext(ctx, "tcp", address); err != nil {
		t.Error(err)
	}
}
