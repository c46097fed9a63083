package goora_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/oracle/client"
	"github.com/observerd/observerd/internal/source/oracle/goora"
	"github.com/observerd/observerd/test/kit/oratest"
)

// Whoever answers is no Oracle: an error, not a panic.
func TestForeignListener(t *testing.T) {
	for name, answer := range map[string]string{
		"silence": "", "http": "HTTP/1.1 400 Bad Request\r\n\r\n", "short accept": "\x00\x08\x00\x00\x02\x00\x00\x00",
		"short refusal": "\x00\x08\x00\x00\x04\x00\x00\x00", "short redirect": "\x00\x0a\x00\x00\x05\x00\x00\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			at := client.Target{User: user, Password: password, Servers: []string{impostor(t, answer)}, Service: "X", ConnectTimeout: soon, Grace: grace, Gate: source.Open{}, Era: new(source.Era)}
			_, err := ask(t.Context(), open(t, at), "SELECT 1")
			if !errors.Is(err, client.ErrConnect) {
				t.Error(err)
			}
			if answer == "" && client.Classify(err).Class != observer.ClassSettings {
				t.Error(err)
			}
		})
	}
}

// impostor answers whatever it is asked with one text, and hangs up.
func impostor(t *testing.T, answer string) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { _ = listener.Close(); work.Wait() })
	return listener.Addr().String()
}

func TestAddresses(t *testing.T) {
	s, other := start(t), start(t)
	other.Refuse(-1, 12514)
	host, port, _ := net.SplitHostPort(s.Addr())
	descriptor := "(DESCRIPTION=(ADDRESS=(PROTOCOL=TCP)(HOST=" + host + ")(PORT=" + port + "))(CONNECT_DATA=(SERVICE_NAME=ORCLPDB1)))"
	for name, change := range map[string]func(*client.Target){
		"service":    func(*client.Target) {},
		"sid":        func(t *client.Target) { t.Service, t.SID = "", "XE" },
		"second":     func(t *client.Target) { t.Servers = []string{nobody, s.Addr()} },
		"third":      func(t *client.Target) { t.Servers = []string{nobody, other.Addr(), s.Addr()} },
		"descriptor": func(t *client.Target) { t.Servers, t.Service, t.Descriptor = nil, "", descriptor },
	} {
		t.Run(name, func(t *testing.T) {
			at := target(s)
			change(&at)
			right(t, open(t, at))
		})
	}
	at := target(s)
	at.Service = "ELSEWHERE"
	_, err := ask(t.Context(), open(t, at), "SELECT 1")
	if fault := client.Classify(err); fault == nil || fault.Code != "ORA-12514" {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	o := options()
	o.TLS = &tls.Config{Certificates: []tls.Certificate{identity}}
	s := oratest.Start(t, o)
	at := target(s)
	at.TLS, at.Verify = true, true
	db := open(t, at)
	right(t, db)
	if n, err := read(t.Context(), db, "SELECT ROWS 60"); n != 60 || err != nil {
		t.Error(n, err)
	}
	trap := s.On(oratest.SQL("deaf"), oratest.Fault{Hang: true, Deaf: true})
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		<-trap.Reached()
		if !eventually(readsAnswer) {
			t.Error("nobody reads the answer")
		}
	}()
	ctx, took := upon(t, reading)
	_, err := ask(ctx, db, "SELECT deaf")
	fails(t, err)
	took(2 * soon)
	right(t, db)
	s.On(oratest.SQL("ROWS"), oratest.Fault{At: oratest.Fetching, Then: oratest.Reset, Times: 1})
	if n, err := read(t.Context(), db, "SELECT ROWS 60"); n != 10 || !errors.Is(err, client.ErrShort) {
		t.Error(n, err)
	}
	at.Service, at.Descriptor = "", ""
	host, port, _ := net.SplitHostPort(s.Addr())
	at.Servers, at.Descriptor = nil, "(DESCRIPTION=(ADDRESS=(PROTOCOL=TCPS)(HOST="+host+")(PORT="+port+"))(CONNECT_DATA=(SERVICE_NAME=ORCLPDB1)))"
	right(t, open(t, at))
}

// readsAnswer reports whether a query is blocked where it reads its answer. On its
// way there the driver looks at whether there was a break, without the lock under
// which its own break, through TLS the only one, notes that: a race, if harmless.
func readsAnswer() bool {
	stacks := make([]byte, 1<<20)
	for one := range bytes.SplitSeq(stacks[:runtime.Stack(stacks, true)], []byte("\n\n")) {
		if bytes.Contains(one, []byte("[IO wait")) && bytes.Contains(one, []byte("goora.(*conn).QueryContext")) {
			return true
		}
	}
	return false
}

func TestTLSMistrust(t *testing.T) {
	o := options()
	o.TLS = &tls.Config{Certificates: []tls.Certificate{identity}}
	s := oratest.Start(t, o)
	_, port, _ := net.SplitHostPort(s.Addr())
	at := target(s)
	at.TLS, at.Verify, at.Servers = true, true, []string{"localhost:" + port} // Not a name of the certificate.
	_, err := ask(t.Context(), open(t, at), "SELECT 1")
	if client.Classify(err).Class != observer.ClassSettings {
		t.Error(err)
	}
	at.Verify = false
	right(t, open(t, at))

	at = target(s) // TLS over there, none here.
	_, err = ask(t.Context(), open(t, at), "SELECT 1")
	if err == nil || !errors.Is(err, client.ErrConnect) {
		t.Error(err)
	}
	plain := start(t) // None over there.
	at = target(plain)
	at.TLS, at.Verify, at.ConnectTimeout = true, true, 300*time.Millisecond
	_, err = ask(t.Context(), open(t, at), "SELECT 1")
	if err == nil || !errors.Is(err, client.ErrConnect) {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	junk := t.TempDir()
	for _, content := range []string{"", "\xa1\xf8N", "\xa1\xf8N6\x00\x00\x00\x06\x00\x00\x00\xff\x06"} {
		path := filepath.Join(junk, "cwallet.sso")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		at := client.Target{User: "u", Password: "Tiger %", Servers: []string{"h:1"}, Service: "S", TLS: true, Wallet: junk, WalletPassword: "Tiger %"}
		if _, err := goora.Open(at); err == nil || strings.Contains(err.Error(), "Tiger") {
			t.Errorf("%q: %v", content, err)
		}
	}
	for name, at := range map[string]client.Target{
		"no password": {User: "u", Servers: []string{"h:1"}, Service: "S"},
		"no wallet":   {User: "u", Password: "Tiger", Servers: []string{"h:1"}, Service: "S", TLS: true, Wallet: "/nowhere"},
		"no server":   {User: "u", Password: "Tiger", Service: "S"},
		"sys":         {User: "SYS", Password: "Tiger", Servers: []string{"h:1"}, Service: "S"},
		"descriptor":  {User: "u", Password: "Tiger", Descriptor: "(DESCRIPTION=(ADDRESS=(HOST=a/b)(PORT=1))(CONNECT_DATA=(SID=S)))"},
	} {
		if _, err := goora.Open(at); err == nil || strings.Contains(err.Error(), "Tiger") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
