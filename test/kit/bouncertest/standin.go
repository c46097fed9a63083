package bouncertest

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// StandIn returns the URL of a database through a pooler that does what PgBouncer 1.21
// does in transaction mode with max_prepared_statements and server_round_robin, for
// machines whose PgBouncer is older: a client has a session of the server from the
// first message of a transaction to its end, another one for the next, and named
// statements of each client are kept apart. Its own sessions have the client_encoding of the
// URL, whatever clients ask for. The server must ask for no password.
func StandIn(t testing.TB, databaseURL string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &standIn{server: *u}
	var work sync.WaitGroup
	work.Go(func() {
		for number := 1; ; number++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c := &client{pooler: p, prefix: fmt.Sprintf("STANDIN_%d_", number), prepared: map[string]*pgproto3.Parse{}}
			work.Go(func() {
				defer conn.Close()
				if err := c.serve(conn); err != nil {
					t.Errorf("stand-in for PgBouncer: %v", err)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		work.Wait()
		for _, s := range p.idle {
			_ = s.conn.Close()
		}
	})
	through := *u
	through.Host = listener.Addr().String()
	return through.String()
}

// least is how many sessions a pool has at least, so that they alternate.
const least = 3

type standIn struct {
	server url.URL
	mu     sync.Mutex
	opened int
	idle   []*session // the next one to take comes first
}

// session is one of the server.
type session struct {
	conn   net.Conn
	server *pgproto3.Frontend
	knows  map[string]bool // prepared statements
}

// take returns the session that has rested for longest, or a new one.
func (p *standIn) take() (*session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opened >= least && len(p.idle) > 0 {
		s := p.idle[0]
		p.idle = p.idle[1:]
		return s, nil
	}
	p.opened++
	conn, err := new(net.Dialer).Dial("tcp", p.server.Host)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, server: pgproto3.NewFrontend(conn, conn), knows: map[string]bool{}}
	s.server.Send(&pgproto3.StartupMessage{
		ProtocolVersion: pgproto3.ProtocolVersion30,
		Parameters: map[string]string{
			"user": p.server.User.Username(), "database": p.server.Path[1:],
			"client_encoding": cmp.Or(p.server.Query().Get("client_encoding"), "UTF8"),
		},
	})
	_, err = s.answers(func(pgproto3.BackendMessage) {})
	return s, err
}

func (p *standIn) giveBack(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
}

// answers passes messages of the server on until it waits for the next query, or for
// the rows of a COPY. It reports whether a transaction is open.
func (s *session) answers(pass func(pgproto3.BackendMessage)) (open bool, err error) {
	if err := s.server.Flush(); err != nil {
		return false, err
	}
	for {
		m, err := s.server.Receive()
		if err != nil {
			return false, err
		}
		pass(m)
		switch m := m.(type) {
		case *pgproto3.CopyInResponse:
			return true, nil
		case *pgproto3.ReadyForQuery:
			return m.TxStatus != 'I', nil
		}
	}
}

type client struct {
	pooler   *standIn
	prefix   string // of its prepared statements
	prepared map[string]*pgproto3.Parse
	session  *session // while a transaction is open
}

// serve returns what goes wrong with the server. A client may leave at any time.
func (c *client) serve(conn net.Conn) error {
	client := pgproto3.NewBackend(conn, conn)
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return nil
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	client.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	client.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	defer func() {
		if c.session != nil { // In the middle of a transaction.
			_ = c.session.conn.Close()
		}
	}()
	for {
		if client.Flush() != nil {
			return nil
		}
		m, err := client.Receive()
		if _, bye := m.(*pgproto3.Terminate); bye || err != nil {
			return nil
		}
		if err := c.begin(); err != nil {
			return err
		}
		c.rename(m)
		c.session.server.Send(m)
		switch m.(type) {
		case *pgproto3.Sync, *pgproto3.Query, *pgproto3.CopyDone, *pgproto3.CopyFail:
		default:
			continue
		}
		open, err := c.session.answers(client.Send)
		if err != nil {
			return err
		}
		if !open {
			c.pooler.giveBack(c.session)
			c.session = nil
		}
	}
}

// begin takes a session, and prepares the statements of the client there.
func (c *client) begin() (err error) {
	if c.session != nil {
		return nil
	}
	if c.session, err = c.pooler.take(); err != nil {
		return err
	}
	for name, statement := range c.prepared {
		if !c.session.knows[name] {
			c.session.server.Send(statement)
			c.session.knows[name] = true
		}
	}
	c.session.server.Send(&pgproto3.Sync{})
	_, err = c.session.answers(func(pgproto3.BackendMessage) {})
	return err
}

// rename puts the prefix before the name of a prepared statement.
func (c *client) rename(m pgproto3.FrontendMessage) {
	renamed := func(name *string) bool {
		if *name == "" {
			return false
		}
		*name = c.prefix + *name
		return true
	}
	switch m := m.(type) {
	case *pgproto3.Parse:
		if renamed(&m.Name) {
			kept := *m // The message is reused for the next one.
			c.prepared[m.Name], c.session.knows[m.Name] = &kept, true
		}
	case *pgproto3.Bind:
		renamed(&m.PreparedStatement)
	case *pgproto3.Describe:
		if m.ObjectType == 'S' {
			renamed(&m.Name)
		}
	case *pgproto3.Close:
		if m.ObjectType == 'S' && renamed(&m.Name) {
			delete(c.prepared, m.Name)
			delete(c.session.knows, m.Name)
		}
	}
}
