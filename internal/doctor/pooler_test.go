package doctor_test

import (
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/observerd/observerd/internal/doctor"
)

// TestPoolerInTransactionMode has a pooler between that gives every client the
// same session of the server, for a transaction at a time.
func TestPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	p := postgres(t, springSix)
	says(t, p.examine(t, 0), "pooler", doctor.OK)
	p.url = pool(t, p.url)
	found := p.examine(t, 0)
	says(t, found, "pooler", doctor.Problem, "a pooler in transaction mode is between")
	says(t, found, "look", doctor.OK)
}

// pool returns the URL of a pooler before the server.
func pool(t *testing.T, server string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	session := &shared{server: pgproto3.NewFrontend(conn, conn)}
	if err := session.begin(u); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer client.Close()
				if err := session.serve(client); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("pooler: %v", err)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		work.Wait()
		_ = conn.Close()
	})
	u.Host = listener.Addr().String()
	return u.String()
}

// shared is the one session of the server, which a client has from the first
// message of a transaction to its end.
type shared struct {
	sync.Mutex
	server *pgproto3.Frontend
}

// begin logs in; the server of the tests asks for no password.
func (s *shared) begin(u *url.URL) error {
	s.server.Send(&pgproto3.StartupMessage{
		ProtocolVersion: pgproto3.ProtocolVersion30,
		Parameters:      map[string]string{"user": u.User.Username(), "database": u.Path[1:], "client_encoding": "UTF8"},
	})
	if err := s.server.Flush(); err != nil {
		return err
	}
	return s.answers(func(pgproto3.BackendMessage) {}, new(bool))
}

// answers passes messages of the server on until it waits for the next query.
func (s *shared) answers(pass func(pgproto3.BackendMessage), open *bool) error {
	for {
		m, err := s.server.Receive()
		if err != nil {
			return err
		}
		pass(m)
		if ready, ok := m.(*pgproto3.ReadyForQuery); ok {
			*open = ready.TxStatus != 'I'
			return nil
		}
	}
}

func (s *shared) serve(conn net.Conn) error {
	client := pgproto3.NewBackend(conn, conn)
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return err
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	client.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	client.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	open, mine := false, false
	defer func() {
		if mine {
			s.Unlock()
		}
	}()
	for {
		if err := client.Flush(); err != nil {
			return err
		}
		m, err := client.Receive()
		if err != nil {
			return err
		}
		if _, bye := m.(*pgproto3.Terminate); bye {
			return nil
		}
		if !mine {
			s.Lock()
			mine = true
		}
		s.server.Send(m)
		switch m.(type) {
		case *pgproto3.Sync, *pgproto3.Query:
		default:
			continue
		}
		if err := s.server.Flush(); err != nil {
			return err
		}
		if err := s.answers(client.Send, &open); err != nil {
			return err
		}
		if !open {
			mine = false
			s.Unlock()
		}
	}
}
