package web_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/web"
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// TestNothingCanBeChanged asks both listeners with every method that could.
func TestNothingCanBeChanged(t *testing.T) {
	t.Parallel()
	o := options()
	o.Socket = filepath.Join(t.TempDir(), "s")
	for listener, ask := range map[string]client{"address": plain(t, start(t, o)), "socket": overSocket(t, o.Socket)} {
		for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/nope", "/debug/pprof/", "/debug/pprof/symbol"} {
			for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"} {
				resp, _ := ask.do(method, path)
				if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET, HEAD" {
					t.Errorf("%s: %s %s: %d, Allow %q", listener, method, path, resp.StatusCode, resp.Header.Get("Allow"))
				}
			}
		}
		if resp, body := ask.do("HEAD", "/healthz"); resp.StatusCode != http.StatusOK || body != "" {
			t.Errorf("%s: HEAD: %d %q", listener, resp.StatusCode, body)
		}
		resp, _ := ask.do("GET", "/")
		for _, header := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Cache-Control"} {
			if resp.Header.Get(header) == "" {
				t.Errorf("%s: no %s", listener, header)
			}
		}
	}
}

// raw sends a request as it is and returns the first line of the answer, and
// all of it.
func raw(t *testing.T, s *web.Server, request string) (first, all string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	// Until the server closes it: with a reset after the answer, where it has not read all.
	text, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	first, _, _ = strings.Cut(string(text), "\r\n")
	return first, string(text)
}

// TestServerWideOptions: "OPTIONS *" is answered by net/http itself, unless it
// is told not to.
func TestServerWideOptions(t *testing.T) {
	t.Parallel()
	if first, all := raw(t, start(t, options()), "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n"); first != "HTTP/1.1 405 Method Not Allowed" {
		t.Error(all)
	}
}

// TestBodiesAreRefused sends bodies that are announced, and never come.
func TestBodiesAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, options())
	for _, header := range []string{"Content-Length: 1000000000", "Transfer-Encoding: chunked", "Expect: 100-continue\r\nContent-Length: 5"} {
		if first, all := raw(t, s, "GET / HTTP/1.1\r\nHost: localhost\r\n"+header+"\r\n\r\n"); first != "HTTP/1.1 413 Request Entity Too Large" {
			t.Errorf("%s: %s", header, all)
		}
	}
}

func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	request := "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n"
	if first, _ := raw(t, start(t, options()), request); first != "HTTP/1.1 431 Request Header Fields Too Large" {
		t.Error(first)
	}
}

// TestHostsThatAreNotThisOne is DNS rebinding: a browser sends what a page of a
// stranger made it believe is the stranger's own host.
func TestHostsThatAreNotThisOne(t *testing.T) {
	t.Parallel()
	o := options()
	o.Listen, o.AllowedHosts, o.Socket = "localhost:0", []string{"metrics.example.org"}, filepath.Join(t.TempDir(), "s")
	s := start(t, o)
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	named := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
	for _, host := range []string{
		"127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:8080", "10.1.2.3:1", "[fe80::1%25eth0]:80", "localhost", "LocalHost:99", "localhost.",
		hostname, strings.ToUpper(hostname) + ":1", "metrics.example.org", "Metrics.Example.Org.:443",
	} {
		if resp, body := plain(t, s).do("GET", "/metrics", named(host)); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", host, resp.StatusCode, body)
		}
	}
	for _, host := range []string{
		"evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "x.metrics.example.org", "example.org", "[::1].evil.example", ":80", "127.0.0.1:80:80",
		strings.Repeat("a", 1000),
	} {
		for _, path := range []string{"/", "/metrics", "/healthz", "/readyz", "/nope"} {
			resp, body := plain(t, s).do("GET", path, named(host))
			if resp.StatusCode != http.StatusMisdirectedRequest || !strings.Contains(body, "http.allowed-hosts") || len(body) > 300 {
				t.Errorf("%s: %d %s", host, resp.StatusCode, body)
			}
		}
		if resp, body := overSocket(t, o.Socket).do("GET", "/metrics", named(host)); resp.StatusCode != http.StatusOK {
			t.Errorf("%s over the socket: %d %s", host, resp.StatusCode, body)
		}
	}
	// Some checks of load balancers name none. No browser does that.
	if first, all := raw(t, s, "GET /healthz HTTP/1.0\r\n\r\n"); first != "HTTP/1.0 200 OK" {
		t.Error(all)
	}
	// An absolute URL outranks the header.
	if first, all := raw(t, s, "GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); !strings.Contains(first, "421") {
		t.Error(all)
	}
}
