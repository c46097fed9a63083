package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// listener is a net.Listener with the HTTP server that serves its connections.
type listener struct {
	net.Listener
	http *http.Server
	// serve returns http.ErrServerClosed after shut.
	serve func() error
	// remove removes the name by which clients find the listener; nil: it has none.
	remove func() error
}

// newServer returns a server that enforces the limits of requests.
func (s *Server) newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadTimeout: readTimeout, ReadHeaderTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true, // OPTIONS * is refused like any other method.
		ErrorLog:                     slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelDebug),
	}
}

// shutTimeout is how long running requests may take to end. A connection without a
// request yet, as browsers and balancers open them in advance, counts as running for
// five seconds.
const shutTimeout = 2 * time.Second

// shut waits for running requests, until the context or shutTimeout ends, and then
// closes their connections. It is safe to call twice.
func (l *listener) shut(ctx context.Context) error {
	var errs []error
	if l.remove != nil {
		errs = append(errs, l.remove())
	}
	ctx, cancel := context.WithTimeout(ctx, shutTimeout)
	defer cancel()
	if err := l.http.Shutdown(ctx); err != nil {
		errs = append(errs, l.http.Close())
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
