package postgres_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
)

// A server of another kind, such as MariaDB, greets first: that may look like any message.
func TestAnotherKindOfServerIsNamed(t *testing.T) {
	t.Parallel()
	for _, greeting := range []string{"c\x00\x00\x00\x0a5.5.5-10.11.6-MariaDB\x00", "T\x00\x00\x00\x06\x00\x00"} {
		listener, err := new(net.ListenConfig).Listen(context.WithoutCancel(t.Context()), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte(greeting))
				_, _ = c.Read(make([]byte, 1024))
				_ = c.Close()
			}
		}()
		s := open(t, postgres.Options{URL: "postgres://someone:secret@" + listener.Addr().String() + "/shop?sslmode=disable"})
		_, err = s.Tables(t.Context(), 10)
		if !errors.Is(err, observer.ErrUnreachable) || !strings.Contains(err.Error(), "the server does not answer as PostgreSQL does") || strings.Contains(err.Error(), "%!") {
			t.Errorf("%q was taken for %v", greeting, err)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	}
}
