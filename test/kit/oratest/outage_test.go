package oratest_test

import (
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

func TestKillSessions(t *testing.T) {
	s := counting(t)
	db := open(t, s)
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	pinned, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer pinned.Close()
	s.KillSessions()
	var id string
	if err := pinned.QueryRowContext(t.Context(), "SELECT id FROM t").Scan(&id); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("error %v, want that of a bad connection", err)
	}
	if got := mustAll(t, db, "SELECT id FROM t"); len(got) != 60 || s.Logons() != 2 {
		t.Errorf("%d rows by %d logons, want a second session", len(got), s.Logons())
	}
}

func TestMute(t *testing.T) {
	s := counting(t)
	s.Mute(true)
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("anybody there?")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server takes the connection", func() bool { return s.Open() == 1 })
	if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the mute server said something: %v", err)
	}
	if s.Open() != 1 || s.Connects() != 0 {
		t.Errorf("%d connections open, %d connected", s.Open(), s.Connects())
	}
	s.Mute(false)
	if err := open(t, s).Ping(); err != nil {
		t.Error(err)
	}
}

// TestSilence loses the way from the server: what was asked is executed.
func TestSilence(t *testing.T) {
	s := counting(t)
	db := open(t, s)
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	s.Silence(true)
	answered := make(chan error, 1)
	go func() {
		_, err := all(t, db, "SELECT id FROM t")
		answered <- err
	}()
	eventually(t, "the statement is executed", func() bool { return executed(s) == 1 })
	select {
	case err := <-answered:
		t.Errorf("an answer out of the silence: %v", err)
	default:
	}
	s.Silence(false)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestCutAndRefuseWithoutAWord(t *testing.T) {
	s := counting(t)
	s.Refuse(1, 0)
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// A CONNECT without a descriptor.
	hello := make([]byte, 70)
	hello[1], hello[4], hello[27] = 70, 1, 70
	if _, err := conn.Write(hello); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read %d bytes, %v; want the end", n, err)
	}
	db := open(t, s)
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	s.Cut()
	if got := mustAll(t, db, "SELECT id FROM t"); len(got) != 60 || s.Logons() != 2 {
		t.Errorf("%d rows by %d logons after the cut", len(got), s.Logons())
	}
}
