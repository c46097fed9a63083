package pgtest

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/servertest"
)

// startTimeout bounds the making and the start of a cluster, which take about
// a second on a machine that has nothing else to do.
const startTimeout = 2 * time.Minute

// kind tells the folders of this package, and what a killed cluster has left.
var kind = servertest.Kind{Prefix: "observerd-pgtest-", Alive: serverAlive, Free: removeSegment}

// superuser is the role that owns a cluster; it needs no password.
const superuser = "postgres"

// Options of a server. The zero value is what most tests want.
type Options struct {
	// Settings override those of the server, by the names of postgresql.conf:
	// {"max_connections": "20"}. By default commits are synchronous and really
	// reach the disk, and 500 connections are allowed.
	Settings map[string]string
	// Dir is the existing folder in which the cluster's own folder is made, for
	// example a small tmpfs that a test fills up. Empty: the temporary directory.
	Dir string
}

// Server is a PostgreSQL cluster of our own, on one port of 127.0.0.1 that
// stays the same over restarts. Its methods are not for concurrent use.
type Server struct {
	bindir  string
	who     servertest.Account
	dir     servertest.Workdir
	options Options
	port    int
	// process is nil before the first start.
	process *servertest.Process
}

// Start gives a test a server of its own and removes it when the test ends. A
// test that fails logs the end of the server's log.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	return servertest.Give(t, "PostgreSQL", servertest.InstallTimeout+startTimeout, func(ctx context.Context) (*Server, error) {
		return Open(ctx, options)
	})
}

// Open makes a cluster and starts its server. The caller must Close it.
func Open(ctx context.Context, options Options) (*Server, error) {
	bindir, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	who, err := servertest.AccountOf("PostgreSQL", "postgres", "nobody")
	if err != nil {
		return nil, err
	}
	dir, err := servertest.NewWorkdir(kind, options.Dir, who)
	if err != nil {
		return nil, err
	}
	s := &Server{bindir: bindir, who: who, dir: dir, options: options}
	if err := s.initialise(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.startAnywhere(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// startAnywhere starts the server for the first time, on a port that is free.
func (s *Server) startAnywhere(ctx context.Context) error {
	return servertest.StartOnFreePort(ctx, func(port int) error {
		s.port = port
		return s.Start(ctx)
	})
}

// Port of the server on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// URL of a database of this server, as its superuser and without TLS. The
// database "postgres" always exists.
func (s *Server) URL(database string) string {
	return (&url.URL{
		Scheme:   "postgres",
		User:     url.User(superuser),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}).String()
}

// LogTail returns the last lines of the server's log.
func (s *Server) LogTail() string { return s.dir.LogTail() }

// Close stops the server without mercy and removes all that it wrote.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(s.Stop(ctx, Immediate), removeSegment(s.dir.Data()), s.dir.Remove())
}
