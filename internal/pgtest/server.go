package pgtest

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startTimeout bounds the making and the start of a cluster, which take about
// a second on a machine that has nothing else to do.
const startTimeout = 2 * time.Minute

// superuser is the role that owns a cluster; it needs no password.
const superuser = "postgres"

// Options of a server. The zero value is what most tests want.
type Options struct {
	// Settings override those of the server, by the names of postgresql.conf:
	// {"max_connections": "20"}. By default commits are synchronous and really
	// reach the disk, and 200 connections are allowed.
	Settings map[string]string
	// Dir is the existing folder in which the cluster's own folder is made, for
	// example a small tmpfs that a test fills up. Empty: the temporary directory.
	Dir string
}

// Server is a PostgreSQL cluster of our own, on one port of 127.0.0.1 that
// stays the same over restarts. Its methods are not for concurrent use.
type Server struct {
	bindir  string
	who     account
	dir     workdir
	options Options
	port    int
	// process is nil before the first start.
	process *process
}

// Start gives a test a server of its own and removes it when the test ends. A
// test that fails logs the end of the server's log.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	server, err := Open(ctx, options)
	if err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server's log ends with:\n%s", server.LogTail())
		}
		if err := server.Close(); err != nil {
			t.Errorf("remove the server: %v", err)
		}
	})
	return server
}

// Open makes a cluster and starts its server. The caller must Close it.
func Open(ctx context.Context, options Options) (*Server, error) {
	bindir, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	who, err := serverAccount()
	if err != nil {
		return nil, err
	}
	dir, err := newWorkdir(options.Dir, who)
	if err != nil {
		return nil, err
	}
	s := &Server{bindir: bindir, who: who, dir: dir, options: options}
	if err := s.initialise(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.startOnFreePort(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
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
func (s *Server) LogTail() string {
	const lines = 30
	text, err := os.ReadFile(s.dir.log())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Close stops the server without mercy and removes all that it wrote.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(s.Stop(ctx, Immediate), removeSegment(s.dir.data()), s.dir.remove())
}
