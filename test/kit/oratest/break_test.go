package oratest_test

import (
	"context"
	"database/sql/driver"
	"net"
	"sync"
	"testing"
	"time"

	go_ora "github.com/sijms/go-ora/v2"

	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// tapped is a dialer that lets a test reach the connections of the driver.
type tapped struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (d *tapped) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, conn)
	return conn, err
}

// interrupt sends a break as the driver does.
func (d *tapped) interrupt(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.conns[0].Write([]byte{0, 0, 0, 11, 12, 0, 0, 0, 1, 0, 3}); err != nil {
		t.Error(err)
	}
}

// tap opens a session whose socket the test can reach too.
func tap(t *testing.T, s *oratest.Server) (driver.Conn, *tapped) {
	t.Helper()
	d := &tapped{}
	connector := go_ora.NewConnector(s.URL(user, password, "SERVER LOCATION", "UTC")).(*go_ora.OracleConnector)
	connector.Dialer(d)
	conn, err := connector.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, d
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("waited in vain: %s", what)
			return
		}
	}
}

func query(conn driver.Conn, sql string) (driver.Rows, error) {
	return conn.(driver.QueryerContext).QueryContext(context.Background(), sql, nil)
}

func TestBreak(t *testing.T) {
	s := counting(t)
	conn, d := tap(t, s)
	trap := s.On(oratest.SQL("FROM t"), oratest.Fault{At: oratest.After, Times: 1, Hang: true})
	var work sync.WaitGroup
	work.Go(func() {
		<-trap.Reached()
		d.interrupt(t)
	})
	_, err := query(conn, "SELECT id FROM t")
	work.Wait()
	wantCode(t, err, 1013)
	rows, err := query(conn, "SELECT id FROM t")
	if err != nil {
		t.Fatalf("the connection after a break: %v", err)
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
	if s.Breaks() != 1 || executed(s) != 2 {
		t.Errorf("%d breaks, %d executions", s.Breaks(), executed(s))
	}
}

// TestLateBreak shows the fate of a break that came after the answer.
func TestLateBreak(t *testing.T) {
	s := counting(t)
	conn, d := tap(t, s)
	d.interrupt(t)
	eventually(t, "the server sees the break", func() bool { return s.Breaks() == 1 })
	_, err := query(conn, "SELECT id FROM t")
	wantCode(t, err, 1013)
	if rows, err := query(conn, "SELECT id FROM t"); err != nil {
		t.Errorf("the call after: %v", err)
	} else if err := rows.Close(); err != nil {
		t.Error(err)
	}
}

func TestDeafToBreak(t *testing.T) {
	s := counting(t)
	conn, d := tap(t, s)
	trap := s.On(oratest.SQL("FROM t"), oratest.Fault{Hang: true, Deaf: true})
	var work sync.WaitGroup
	work.Go(func() {
		<-trap.Reached()
		d.interrupt(t)
		eventually(t, "the server sees the break", func() bool { return s.Breaks() == 1 })
		trap.Release()
	})
	rows, err := query(conn, "SELECT id FROM t")
	work.Wait()
	if err != nil {
		t.Fatalf("a break that nobody heard: %v", err)
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
}

func TestBreakReachesTheHandler(t *testing.T) {
	s, h := start(t, oratest.Options{})
	began := make(chan struct{})
	h.on("lock", func(ctx context.Context, _ wire.Statement) (wire.Result, error) {
		close(began)
		<-ctx.Done()
		return wire.Result{}, ctx.Err()
	})
	conn, d := tap(t, s)
	var work sync.WaitGroup
	work.Go(func() {
		<-began
		d.interrupt(t)
	})
	_, err := query(conn, "SELECT id FROM lock")
	work.Wait()
	wantCode(t, err, 1013)
}
