package app_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/observerd/observerd/internal/app"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/web"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/webtest"
)

// TestInsecureIsShown runs a node without authentication: it says so on its
// page and among its metrics.
func TestInsecureIsShown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		http  config.HTTP
		gauge string
		shown bool
	}{
		"loopback": {config.HTTP{Listen: "127.0.0.1:0"}, "observerd_http_insecure 0\n", false},
		"leftover": {config.HTTP{Listen: "127.0.0.1:0", Insecure: true}, "observerd_http_insecure 0\n", false},
		"exposed":  {config.HTTP{Listen: "0.0.0.0:0", Insecure: true}, "observerd_http_insecure 1\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t, "")
			p.config.HTTP = tc.http
			node := p.start(t)
			if _, text := getLocally(t, node, "/metrics"); !strings.Contains(text, "\n"+tc.gauge) {
				t.Errorf("no %q", tc.gauge)
			}
			if _, text := getLocally(t, node, "/"); strings.Contains(text, "http.insecure") != tc.shown {
				t.Errorf("the page:\n%s", text)
			}
		})
	}
}

// getLocally asks a node that listens on every interface.
func getLocally(t *testing.T, node *app.App, path string) (int, string) {
	t.Helper()
	_, port, err := net.SplitHostPort(node.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return fetch(t, &http.Transport{DisableKeepAlives: true}, "http://127.0.0.1:"+port+path)
}

func fetch(t *testing.T, transport *http.Transport, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestProtectedNode listens where others can come in, with a web configuration
// that later loses its users.
func TestProtectedNode(t *testing.T) {
	t.Parallel()
	p, dir := setup(t, ""), t.TempDir()
	authority := webtest.NewAuthority(t)
	authority.WriteServer(dir, "node")
	file := webtest.WriteConfig(t, dir, webtest.TLS+webtest.User(t, "prometheus", "secret"))
	p.config.HTTP = config.HTTP{Listen: "0.0.0.0:0", WebConfig: file, Socket: filepath.Join(dir, "http.sock")}
	node := p.start(t)
	_, port, err := net.SplitHostPort(node.Addr())
	if err != nil {
		t.Fatal(err)
	}
	trusting := webtest.Transport(authority)
	for user, want := range map[string]int{"": http.StatusUnauthorized, "prometheus:wrong@": http.StatusUnauthorized, "prometheus:secret@": http.StatusOK} {
		if code, _ := fetch(t, trusting, "https://"+user+"127.0.0.1:"+port+"/metrics"); code != want {
			t.Errorf("%q: %d", user, code)
		}
	}
	webtest.WriteConfig(t, dir, webtest.TLS)
	if code, _ := fetch(t, trusting, "https://127.0.0.1:"+port+"/metrics"); code != http.StatusServiceUnavailable {
		t.Errorf("without users: %d", code)
	}
	overSocket := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.config.HTTP.Socket)
	}}
	if code, text := fetch(t, overSocket, "http://localhost/metrics"); code != http.StatusOK || !strings.Contains(text, "\nobserverd_http_insecure 0\n") {
		t.Errorf("over the socket: %d", code)
	}
}

// TestAddressInUse is told apart from a database that is down.
func TestAddressInUse(t *testing.T) {
	t.Parallel()
	p := setup(t, "")
	first := p.start(t)
	p.config.HTTP.Listen = first.Addr()
	_, err := app.New(t.Context(), p.options())
	if !errors.Is(err, syscall.EADDRINUSE) || !errors.Is(err, web.ErrSetting) || wiring.FaultOf(err) != wiring.Misconfigured {
		t.Errorf("fault %d: %v", wiring.FaultOf(err), err)
	}
}
