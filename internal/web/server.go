// Package web shows the state of the process and of the cluster over HTTP: a
// status page, health, readiness and metrics. It only reads; no request
// changes anything.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/observerd/observerd/internal/status"
)

// Options say what the server shows. All fields are required.
type Options struct {
	// Listen is the address, as host:port; port 0 takes a free one.
	Listen string
	// Node is the name of this node, Version the program's.
	Node, Version string
	// Gatherer collects the metrics.
	Gatherer prometheus.Gatherer
	// Stuck names the loops of the process that hang; none means healthy. It
	// must not touch a database.
	Stuck func() []string
	// Ready returns nil when this node can do its work, or says why not.
	Ready func(ctx context.Context) error
	// Report describes the cluster.
	Report func(ctx context.Context) (status.Report, error)
	Logger *slog.Logger
}

// Limits of a request. They keep a slow or greedy client from holding on to
// the process.
const (
	readTimeout   = 5 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = time.Minute
	lookupTimeout = 5 * time.Second
	maxHeader     = 16 << 10
)

// Server serves the pages.
type Server struct {
	options  Options
	http     *http.Server
	listener net.Listener
	serving  sync.WaitGroup
}

// New listens, so that an address in use is reported at once; [Server.Start]
// serves.
func New(ctx context.Context, o Options) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("http.listen: %w", err)
	}
	s := &Server{options: o, listener: listener}
	s.http = &http.Server{
		Handler: s.routes(), ReadTimeout: readTimeout, ReadHeaderTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Start serves until [Server.Stop].
func (s *Server) Start() {
	s.serving.Go(func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.options.Logger.Error("Error serving HTTP", "err", err)
		}
	})
}

// Stop lets running requests end within the context. It is safe to call twice
// and before Start.
func (s *Server) Stop(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if closed := s.listener.Close(); err == nil && !errors.Is(closed, net.ErrClosed) {
		err = closed
	}
	s.serving.Wait()
	return err
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.options.Gatherer, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelWarn), EnableOpenMetrics: true,
	}))
	return headers(mux)
}

// headers keeps browsers from guessing, framing and keeping what they saw.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}
