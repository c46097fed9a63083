package oratest

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// Options say which database a server pretends to be.
type Options struct {
	// Address is the host:port to listen at, as a database that was down and
	// comes back does; empty is a free port of 127.0.0.1.
	Address string
	// Users are the accounts with their passwords. Names fold to capitals.
	Users map[string]string
	// Service is the name to ask for; empty is ORCLPDB1. SIDs are what may be
	// asked for instead of it.
	Service string
	SIDs    []string
	// Version is the major version that the banner shows, 11 for 11.2; 0 is 19.
	Version int
	// Handler answers the statements.
	Handler wire.Handler
	// TLS encrypts all connections (TCPS); nil leaves them plain.
	TLS *tls.Config
	// PacketSize is the largest packet either way, in bytes; 0 is 8,192.
	PacketSize int
	// Repeats leaves values out of rows that are those of the row before, as a
	// database does.
	Repeats bool
}

// Server is a database on a loopback port, as far as a client can tell. Its
// methods may be called at any time, from any goroutine.
type Server struct {
	opts     Options
	listener net.Listener
	accounts *accounts
	traps    traps
	counters counters
	work     sync.WaitGroup

	mu       sync.Mutex
	conns    map[*conn]struct{}
	closed   bool
	mute     bool
	refusals int
	refusal  int
	serial   int
}

// Start opens a server for a test, and closes it at the test's end.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		for _, problem := range s.Problems() {
			t.Logf("oratest: %v", problem)
		}
	})
	return s
}

// Open opens a server. The caller must Close it.
func Open(o Options) (*Server, error) {
	o.Service = cmp.Or(o.Service, "ORCLPDB1")
	o.Address = cmp.Or(o.Address, "127.0.0.1:0")
	o.Version = cmp.Or(o.Version, 19)
	o.PacketSize = cmp.Or(o.PacketSize, 8192)
	accounts := &accounts{all: make(map[string]*account)}
	for user, password := range o.Users {
		accounts.add(user, password)
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", o.Address)
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, listener: listener, accounts: accounts, conns: make(map[*conn]struct{})}
	s.work.Go(s.serve)
	return s, nil
}

// Addr is the host:port of the server.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL is what the driver connects to, with its options as keys and values.
func (s *Server) URL(user, password string, options ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(options); i += 2 {
		query.Set(options[i], options[i+1])
	}
	u := url.URL{
		Scheme: "oracle", User: url.UserPassword(user, password), Host: s.Addr(),
		Path: "/" + s.opts.Service, RawQuery: query.Encode(),
	}
	return u.String()
}

// Close cuts every connection, ends every wait of a fault and returns when no
// goroutine of the server is left.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	_ = s.listener.Close()
	s.mu.Unlock()
	s.Cut()
	s.work.Wait()
}

// Cut closes every connection without a word, as a crash of the database does.
func (s *Server) Cut() {
	for _, c := range s.open() {
		c.cut()
	}
}

func (s *Server) open() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

func (s *Server) serve() {
	for {
		raw, err := s.listener.Accept()
		if err != nil {
			return
		}
		if c := s.admit(raw); c != nil {
			s.work.Go(c.serve)
		}
	}
}

// admit takes a connection in, unless the server has been closed.
func (s *Server) admit(raw net.Conn) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = raw.Close()
		return nil
	}
	s.serial++
	c := newConn(s, raw, s.serial)
	c.mute = s.mute
	if s.refusals != 0 {
		c.refused, c.refusal = true, s.refusal
		s.refusals--
	}
	s.conns[c] = struct{}{}
	return c
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}
