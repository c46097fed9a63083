package pgtest

import (
	"context"
	"errors"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/servertest"
)

// startTimeout bounds the making and the start of a cluster, which take about
// a second on a machine that has nothing else to do.
const startTimeout = 2 * time.Minute

// kind is PostgreSQL, and what a killed cluster has left.
var kind = servertest.Kind{
	Name: "PostgreSQL", Prefix: "observerd-pgtest-", Users: []string{"postgres", "nobody"}, Pid: "postmaster.pid",
	End: syscall.SIGQUIT, Free: removeSegment,
}

// Sweep removes what tests that were killed have left of their servers.
func Sweep() { kind.Sweep() }

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
	*servertest.Instance
	bindir  string
	options Options
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
	instance, err := servertest.NewInstance(kind, options.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{Instance: instance, bindir: bindir, options: options}
	if err = s.initialise(ctx); err == nil {
		err = s.startAnywhere(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// startAnywhere starts the server for the first time, on a port that is free.
func (s *Server) startAnywhere(ctx context.Context) error {
	return servertest.StartOnFreePort(ctx, func(port int) error {
		s.Instance.Port = port
		return s.Start(ctx)
	})
}

// Port of the server on 127.0.0.1.
func (s *Server) Port() int { return s.Instance.Port }

// URL of a database of this server, as its superuser and without TLS. The
// database "postgres" always exists.
func (s *Server) URL(database string) string {
	return (&url.URL{
		Scheme:   "postgres",
		User:     url.User(superuser),
		Host:     s.Address(),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}).String()
}
