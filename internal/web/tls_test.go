package web_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/observerd/observerd/internal/web"
	"github.com/observerd/observerd/test/kit/webtest"
)

// secured are options with a web configuration, and what trusts its authority.
func secured(t *testing.T, text string) (web.Options, *webtest.Authority, client) {
	t.Helper()
	dir := t.TempDir()
	authority := webtest.NewAuthority(t)
	authority.WriteServer(dir, "first")
	authority.WriteAuthority(dir)
	o := options()
	o.WebConfig = webtest.WriteConfig(t, dir, text)
	return o, authority, client{t: t, transport: webtest.Transport(authority)}
}

func as(user, password string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(user, password) }
}

func TestTLSAndUsers(t *testing.T) {
	t.Parallel()
	o, _, ask := secured(t, webtest.TLS+webtest.User(t, "prometheus", "secret"))
	o.Socket = filepath.Join(t.TempDir(), "s")
	s := start(t, o)
	ask.base = "https://" + s.Addr()
	for _, path := range []string{"/", "/metrics", "/healthz", "/readyz", "/nope"} {
		if resp, body := ask.do("GET", path); resp.StatusCode != http.StatusUnauthorized || strings.Contains(body, "observerd") {
			t.Errorf("%s without a password: %d %s", path, resp.StatusCode, body)
		}
	}
	for name, who := range map[string]func(*http.Request){"password": as("prometheus", "Secret"), "user": as("grafana", "secret"), "nobody": as("", "")} {
		if resp, _ := ask.do("GET", "/metrics", who); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("wrong %s: %d", name, resp.StatusCode)
		}
	}
	resp, body := ask.do("GET", "/metrics", as("prometheus", "secret"))
	if resp.StatusCode != http.StatusOK || !strings.Contains(body, "observerd_test_total") || resp.ProtoMajor != 2 {
		t.Errorf("%s %d %s", resp.Proto, resp.StatusCode, body)
	}
	if resp, _ := ask.do("DELETE", "/metrics", as("prometheus", "secret")); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("DELETE: %d", resp.StatusCode)
	}
	evil := func(r *http.Request) { r.Host = "evil.example"; r.SetBasicAuth("prometheus", "secret") }
	if resp, _ := ask.do("GET", "/metrics", evil); resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("another host: %d", resp.StatusCode)
	}
	// The socket has neither: who may open it is decided by its mode.
	if resp, _ := overSocket(t, o.Socket).do("GET", "/metrics"); resp.StatusCode != http.StatusOK {
		t.Errorf("socket: %d", resp.StatusCode)
	}
	// Without TLS there is no page.
	if first, all := raw(t, s, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"); !strings.Contains(first, "400") {
		t.Errorf("without TLS: %s", all)
	}
}

// TestOldTLSIsRefused speaks 1.1, which Go still does when it is told to.
func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	o, authority, ask := secured(t, webtest.TLS)
	s := start(t, o)
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", s.Addr(), &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS10, MaxVersion: version})
		if (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if conn != nil {
			_ = conn.Close()
		}
	}
	ask.base = "https://" + s.Addr()
	if resp, _ := ask.do("GET", "/healthz"); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	o, authority, ask := secured(t,
		"tls_server_config: {cert_file: server.pem, key_file: server.key, client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem}\n")
	ask.base = "https://" + start(t, o).Addr()
	for name, tc := range map[string]struct {
		certificates []tls.Certificate
		welcome      bool
	}{
		"none":    {nil, false},
		"another": {[]tls.Certificate{webtest.NewAuthority(t).Client()}, false},
		"ours":    {[]tls.Certificate{authority.Client()}, true},
	} {
		ask.transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), Certificates: tc.certificates}, DisableKeepAlives: true}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ask.base+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := ask.transport.RoundTrip(req)
		if (err == nil) != tc.welcome {
			t.Errorf("%s: %v", name, err)
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
	}
}

// TestWhatIsReplacedIsUsed replaces certificate and users while the server runs.
func TestWhatIsReplacedIsUsed(t *testing.T) {
	t.Parallel()
	o, authority, ask := secured(t, webtest.TLS+webtest.User(t, "prometheus", "old"))
	ask.base = "https://" + start(t, o).Addr()
	served := func(password string) (code int, name string) {
		resp, _ := ask.do("GET", "/healthz", as("prometheus", password))
		return resp.StatusCode, resp.TLS.PeerCertificates[0].Subject.CommonName
	}
	if code, name := served("old"); code != http.StatusOK || name != "first" {
		t.Fatalf("%d by %s", code, name)
	}
	authority.WriteServer(filepath.Dir(o.WebConfig), "second")
	webtest.WriteConfig(t, filepath.Dir(o.WebConfig), webtest.TLS+webtest.User(t, "prometheus", "new"))
	if code, name := served("new"); code != http.StatusOK || name != "second" {
		t.Errorf("%d by %s", code, name)
	}
	if code, _ := served("old"); code != http.StatusUnauthorized {
		t.Errorf("the old password: %d", code)
	}
	// What is broken serves nobody, rather than everybody.
	webtest.WriteConfig(t, filepath.Dir(o.WebConfig), "nonsense")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ask.base+"/healthz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := ask.transport.RoundTrip(req); err == nil {
		t.Errorf("served with a broken web configuration: %s", resp.Status)
		_ = resp.Body.Close()
	}
}

// TestProtectionThatWasLost: users are read anew at each request, so whoever
// removes them must not open the address to everybody.
func TestProtectionThatWasLost(t *testing.T) {
	t.Parallel()
	o, _, ask := secured(t, webtest.TLS)
	var lost atomic.Bool
	var said strings.Builder
	o.Listen, o.Logger = "0.0.0.0:0", slog.New(slog.NewTextHandler(&said, nil))
	o.Protected = func() error {
		if lost.Load() {
			return errors.New("it has no authentication")
		}
		return nil
	}
	s := start(t, o)
	_, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	ask.base = "https://127.0.0.1:" + port
	if resp, _ := ask.do("GET", "/healthz"); resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	lost.Store(true)
	for _, path := range []string{"/", "/metrics", "/healthz", "/readyz"} {
		if resp, body := ask.do("GET", path); resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "http.web-config") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	lost.Store(false)
	if resp, _ := ask.do("GET", "/healthz"); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
	lost.Store(true)
	ask.do("GET", "/healthz")
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(said.String(), "no authentication"); n != 2 {
		t.Errorf("said %d times, want once for each time that it is lost:\n%s", n, &said)
	}
}

// TestProtectionNeedsTLS: what the file says counts only if it is what is spoken.
func TestProtectionNeedsTLS(t *testing.T) {
	t.Parallel()
	o := options()
	o.Listen, o.Protected = "0.0.0.0:0", func() error { return nil }
	s := start(t, o)
	_, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	ask := plain(t, s)
	ask.base = "http://127.0.0.1:" + port
	if resp, _ := ask.do("GET", "/metrics"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Error(resp.Status)
	}
}

// TestAddressesThatNeedProtection: the address that was got decides.
func TestAddressesThatNeedProtection(t *testing.T) {
	t.Parallel()
	o := options()
	o.Protected = func() error { return errors.New("there is no web-config") }
	start(t, o) // On the loopback it is not asked.
	o.Listen = ":0"
	if _, err := web.New(t.Context(), o); !errors.Is(err, web.ErrSetting) || !strings.Contains(err.Error(), "there is no web-config") {
		t.Errorf("unprotected: %v", err)
	}
	o.Protected = nil
	start(t, o)
}

func TestBrokenWebConfig(t *testing.T) {
	t.Parallel()
	o, _, _ := secured(t, "nonsense: 1\n")
	if _, err := web.New(t.Context(), o); !errors.Is(err, web.ErrSetting) || !strings.Contains(err.Error(), "http.web-config") {
		t.Errorf("got %v", err)
	}
}
