package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// door is one listener and the server behind it.
type door struct {
	http     *http.Server
	listener net.Listener
	// serve returns when the door was shut, with http.ErrServerClosed.
	serve func() error
	// remove takes away what others would find the listener by; nil is
	// nothing.
	remove func() error
}

// newServer returns a server with the limits of requests.
func (s *Server) newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadTimeout: readTimeout, ReadHeaderTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true, // OPTIONS * is refused like any other method.
		ErrorLog:                     slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelDebug),
	}
}

// shutTimeout is how long running requests may take to end. A connection on
// which nothing was asked yet, as browsers and balancers open them in advance,
// counts as running for five seconds.
const shutTimeout = 2 * time.Second

// shut lets running requests end within the context and shutTimeout, and cuts
// off those that do not. It is safe to call twice.
func (d *door) shut(ctx context.Context) error {
	var errs []error
	if d.remove != nil {
		errs = append(errs, d.remove())
	}
	ctx, cancel := context.WithTimeout(ctx, shutTimeout)
	defer cancel()
	if err := d.http.Shutdown(ctx); err != nil {
		errs = append(errs, d.http.Close())
	}
	if err := d.listener.Close(); !errors.Is(err, net.ErrClosed) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
