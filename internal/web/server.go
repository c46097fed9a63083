// Package web shows the state of the process and of the cluster over HTTP: a
// status page, health, readiness and metrics, on a TCP address, on a Unix
// socket or on both. It only reads; no request changes anything.
//
// The address may have TLS and authentication, and answers to known host names
// alone, so that no foreign page can reach it through a user's browser. The socket
// is for this user and root, and has profiles beside the pages.
package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/status"
)

// Options configure the server. All fields are required unless they say otherwise.
type Options struct {
	// Listen is the TCP address, as host:port; port 0 takes a free one. Empty
	// means that there is none.
	Listen string
	// WebConfig is the file of a web configuration, as Prometheus'
	// exporter-toolkit reads it, for Listen. It is read anew for each
	// connection and each request. Empty means neither TLS nor authentication.
	WebConfig string
	// Protected returns nil while WebConfig asks for TLS and authentication.
	// Where other hosts can reach Listen, every request is refused while it
	// does not. nil lets them in.
	Protected func() error
	// Exposed reports whether other hosts are let in without TLS or without
	// authentication, which the page then says. nil means that they are not.
	Exposed func() bool
	// AllowedHosts are the names by which Listen may be asked, in lower case,
	// beside addresses, localhost, the host of Listen and this host's name.
	AllowedHosts []string
	// Socket is the path of the Unix socket. Empty means that there is none.
	Socket string
	// Node is the name of this node, Version the program's.
	Node, Version string
	// Cluster is the name of the cluster; empty for none.
	Cluster string
	// Gatherer collects the metrics.
	Gatherer prometheus.Gatherer
	// Stuck names the loops of the process that hang; none means healthy. It
	// must not touch a database.
	Stuck func() []string
	// Ready returns nil when this node can work, or the reason why it cannot.
	Ready func(ctx context.Context) error
	// Report describes the cluster.
	Report func(ctx context.Context) (status.Report, error)
	// Lookups are what the API shows beside the report.
	Lookups Lookups
	// Explain returns a text for all readers that says why Report, or a lookup, failed.
	Explain func(error) string
	Logger  *slog.Logger
}

// Limits of a request. They keep a slow or greedy client from holding on to
// the process.
const (
	readTimeout   = 5 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = time.Minute
	lookupTimeout = 5 * time.Second
	readyTimeout  = 2 * time.Second // Shorter than our probes wait, or they would not learn the reason.
	maxHeader     = 16 << 10
	// maxConnections are those of the address at a time. More wait to be
	// accepted. Each costs a file descriptor and some 20 to 60 KB.
	maxConnections = 500
)

// Server serves the pages.
type Server struct {
	options Options
	// listeners are the address and the socket, in this order.
	listeners []*listener
	address   string
	serving   sync.WaitGroup
	started   time.Time
	// mu is held while a report is read: the others wait for it.
	mu       sync.Mutex
	lastRead *reading
	// lookups are the requests of the API that are answered now.
	lookups chan struct{}
	// stopping ends with Stop, and with it requests that would take long.
	stopping context.Context //nolint:containedctx // New and Stop are its ends.
	stop     context.CancelFunc
}

// New listens, so that an address in use is reported at once; [Server.Start]
// serves. An error says which key of the configuration to change; see
// [ErrSetting].
func New(ctx context.Context, o Options) (*Server, error) {
	s := &Server{options: o, started: time.Now(), lookups: make(chan struct{}, maxLookups)}
	s.stopping, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	for _, open := range []func(context.Context) error{s.openAddress, s.openSocket} {
		if err := open(ctx); err != nil {
			s.stop()
			for _, l := range s.listeners {
				_ = l.shut(ctx) // No client was served yet.
			}
			return nil, err
		}
	}
	return s, nil
}

// Addr returns the TCP address that the server listens on; empty when there is none.
func (s *Server) Addr() string { return s.address }

// Start serves until [Server.Stop].
func (s *Server) Start() {
	for _, l := range s.listeners {
		s.serving.Go(func() {
			if err := l.serve(); !errors.Is(err, http.ErrServerClosed) {
				_ = l.Close() // Clients are refused rather than kept waiting.
				s.options.Logger.Error("Error serving HTTP", "err", err)
			}
		})
	}
}

// Stop lets running requests end within the context; profiles end at once. It
// is safe to call twice and before Start.
func (s *Server) Stop(ctx context.Context) error {
	s.stop()
	errs := make([]error, len(s.listeners))
	var closing sync.WaitGroup
	for i, l := range s.listeners {
		closing.Go(func() { errs[i] = l.shut(ctx) })
	}
	closing.Wait()
	s.serving.Wait()
	return errors.Join(errs...)
}

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
