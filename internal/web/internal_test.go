package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const long = 30 * time.Second

// unstarted returns a server with both listeners that is not started yet.
func unstarted(t *testing.T) *Server {
	t.Helper()
	s, err := New(t.Context(), Options{
		Listen: "127.0.0.1:0", Socket: filepath.Join(t.TempDir(), "s"),
		Logger: slog.New(slog.DiscardHandler), Gatherer: prometheus.NewRegistry(), Stuck: func() []string { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestEveryListenerHasLimits(t *testing.T) {
	t.Parallel()
	for _, l := range unstarted(t).listeners {
		h := l.http
		if h.ReadHeaderTimeout != readTimeout || h.ReadTimeout != readTimeout || h.WriteTimeout != writeTimeout || h.IdleTimeout != idleTimeout || h.MaxHeaderBytes != maxHeader {
			t.Errorf("%s: %+v", l.Addr().Network(), h)
		}
	}
}

// TestSlowHeaders begins requests and never ends them, on listeners with less time.
func TestSlowHeaders(t *testing.T) {
	t.Parallel()
	s := unstarted(t)
	for _, l := range s.listeners {
		l.http.ReadHeaderTimeout, l.http.ReadTimeout = 50*time.Millisecond, 50*time.Millisecond
	}
	s.Start()
	for _, l := range s.listeners {
		a := l.Addr()
		conn, err := new(net.Dialer).DialContext(t.Context(), a.Network(), a.String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if err := conn.SetDeadline(time.Now().Add(long)); err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
		var text []byte
		if err == nil {
			text, err = io.ReadAll(conn)
		}
		// Who comes too late to write, or is not read to the end, is told otherwise.
		if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) || strings.Contains(string(text), "200 OK") {
			t.Errorf("%s: %q, %v", a.Network(), text, err)
		}
	}
}

// TestConnectionsAreLimited opens as many as there may be, of whom nobody asks
// anything, and one more, which is served when one of them leaves.
func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	s := unstarted(t)
	l := s.listeners[0]
	opened := make(chan struct{}, 2*maxConnections)
	l.http.ReadHeaderTimeout, l.http.ReadTimeout = long, long
	l.http.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened <- struct{}{}
		}
	}
	s.Start()
	dial := func() net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	var first net.Conn
	for i := range maxConnections {
		conn := dial()
		if i == 0 {
			first = conn
		}
		<-opened
	}
	last := dial()
	if _, err := io.WriteString(last, "GET /healthz HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := last.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := last.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("one more than %d is served: %v", maxConnections, err)
	}
	_ = first.Close() // Its slot is released when the server notices.
	if err := last.SetReadDeadline(time.Now().Add(long)); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(last); err != nil || !strings.Contains(string(text), "200 OK") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestProfilesOutlastTheTimeouts takes a profile for longer than a request may
// otherwise take.
func TestProfilesOutlastTheTimeouts(t *testing.T) {
	t.Parallel()
	s := unstarted(t)
	l := s.listeners[1]
	l.http.ReadHeaderTimeout, l.http.ReadTimeout, l.http.WriteTimeout = 5*time.Second, 5*time.Second, 5*time.Second
	s.Start()
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(long)); err != nil {
		t.Fatal(err)
	}
	// Not the CPU profile, of which there is one at a time in a process: another
	// test may take it. Both wait in the same way.
	if _, err := io.WriteString(conn, "GET /debug/pprof/goroutine?seconds=6 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || len(text) == 0 {
		t.Errorf("%s: %d bytes, %v", resp.Status, len(text), err)
	}
}

// TestErrorsSayWhatToDo has those that a test cannot make everywhere.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	bind := func(err error) error { return &net.OpError{Op: "listen", Net: "tcp", Err: err} }
	for name, tc := range map[string]struct {
		err     error
		say     string
		setting bool
		right   bool
	}{
		"in use":        {explainListen("127.0.0.1:80", bind(syscall.EADDRINUSE)), "http.listen: another process listens on 127.0.0.1:80; stop it", true, false},
		"below 1024":    {explainListen("127.0.0.1:80", bind(syscall.EACCES)), "CAP_NET_BIND_SERVICE", false, true},
		"not ours":      {explainListen("192.0.2.1:80", bind(syscall.EADDRNOTAVAIL)), "this host does not have the address", true, false},
		"no such name":  {explainListen("nope:80", bind(&net.DNSError{IsNotFound: true})), "no host has the name", true, false},
		"resolver down": {explainListen("nope:80", bind(&net.DNSError{IsTimeout: true})), "http.listen: ", false, false},
		"folder":        {explainSocket("/run/o/s", &fs.PathError{Op: "mkdir", Path: "/run/o", Err: syscall.EACCES}), "change owner or mode of its folder", false, true},
		"read-only":     {explainSocket("/run/o/s", syscall.EROFS), "change owner or mode of its folder", false, false},
		"other":         {explainSocket("/run/o/s", syscall.EIO), "http.socket: /run/o/s: ", false, false},
	} {
		if !strings.Contains(tc.err.Error(), tc.say) || errors.Is(tc.err, ErrSetting) != tc.setting || errors.Is(tc.err, fs.ErrPermission) != tc.right {
			t.Errorf("%s: %v (setting %v, right %v)", name, tc.err, errors.Is(tc.err, ErrSetting), errors.Is(tc.err, fs.ErrPermission))
		}
	}
}

// TestOneAtATimeMakesASocket: while another process makes one in the folder,
// nothing in it is touched.
func TestOneAtATimeMakesASocket(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "s")
	unlock, err := lockFolder(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, _, err := listenSocket(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("not waited for: %v", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a socket was made meanwhile: %v", err)
	}
	unlock()
	listener, _, err := listenSocket(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
}
