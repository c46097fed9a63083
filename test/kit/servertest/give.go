package servertest

import (
	"context"
	"io"
	"testing"
	"time"
)

// Server is a throw-away server of some kind.
type Server interface {
	// Close ends it without mercy and removes all that it wrote.
	io.Closer
	// LogTail returns the last lines of its log.
	LogTail() string
}

// Give gives a test a server of its own and removes it when the test ends. A
// test that fails logs the end of the server's log. name is the kind of server,
// for messages; limit bounds open.
func Give[S Server](t testing.TB, name string, limit time.Duration, open func(context.Context) (S, error)) S {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	server, err := open(ctx)
	if err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of %s ends with:\n%s", name, server.LogTail())
		}
		if err := server.Close(); err != nil {
			t.Errorf("remove the server of %s: %v", name, err)
		}
	})
	return server
}
