package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/test/kit/webtest"
)

// asked runs the health check in this process.
func asked(t *testing.T, http string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("http: "+http+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, complaint strings.Builder
	code = run(t.Context(), append([]string{"healthcheck", "--config", path}, args...), nil, strings.NewReader(""), &out, &complaint)
	return code, out.String(), complaint.String()
}

// program is something that listens on this host.
func program(t *testing.T, code int, text string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Host != "localhost" {
			t.Errorf("%s of %s", r.Method, r.Host)
		}
		w.Header().Set("Location", "https://elsewhere.example/")
		w.WriteHeader(code)
		fmt.Fprint(w, r.URL.Path+text)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestHealthcheckOfOtherAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code int
		text string
		want string
	}{
		"another program": {http.StatusOK, " is fine", "does another program listen there?"},
		"a redirect":      {http.StatusFound, "", "(%s, 302)"},
		"a long story":    {http.StatusServiceUnavailable, "\n" + strings.Repeat("x\n", 1<<20), "/healthz x x x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := program(t, tc.code, tc.text).Listener.Addr().String()
			code, stdout, stderr := asked(t, "{listen: "+address+"}", "--timeout", "1m")
			if code != exitFailure || stdout != "" || !strings.Contains(stderr, strings.ReplaceAll(tc.want, "%s", address)) || strings.Count(stderr, "\n") != 1 || len(stderr) > 2000 {
				t.Errorf("%d %q %q", code, stdout, stderr)
			}
		})
	}
}

// TestHealthcheckGivesUp asks who never answers.
func TestHealthcheckGivesUp(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	code, _, stderr := asked(t, "{listen: "+listener.Addr().String()+"}", "--timeout", "50ms")
	if want := "observerd: no answer from " + listener.Addr().String() + " within --timeout\n"; code != exitFailure || stderr != want {
		t.Errorf("%d %q, want %q", code, stderr, want)
	}
}

func TestHealthcheckWithoutAWay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	webtest.NewAuthority(t).WriteServer(dir, "server")
	file := webtest.WriteConfig(t, dir, webtest.TLS)
	other := webtest.WriteConfig(t, t.TempDir(), webtest.User(t, "u", "p"))
	for http, want := range map[string]string{
		`{listen: ""}`: "there is nothing to ask",
		"{listen: \"127.0.0.1:8080\", web-config: " + file + "}":  "set http.socket as well",
		"{listen: \"127.0.0.1:8080\", web-config: " + other + "}": "set http.socket as well",
		"{listen: nonsense}": "is not an address",
	} {
		lines := 1
		if strings.Contains(http, "nonsense") { // A node that runs is the other way.
			lines = 2
		}
		if code, stdout, stderr := asked(t, http); code != exitConfiguration || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != lines {
			t.Errorf("%s: %d %q %q", http, code, stdout, stderr)
		}
	}
}

// TestWhereANodeIsAsked has addresses that are not asked as they are written.
func TestWhereANodeIsAsked(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"0.0.0.0:80": "127.0.0.1:80", ":80": "127.0.0.1:80", "[::]:80": "[::1]:80", "10.0.0.5:80": "10.0.0.5:80",
		"[::1]:80": "[::1]:80", "node-a:80": "node-a:80", "localhost:80": "localhost:80",
	} {
		if got, err := reach(config.HTTP{Listen: listen}); err != nil || got.String() != want || got.Network != "tcp" {
			t.Errorf("%s: %v, %v", listen, got, err)
		}
	}
	if got, err := reach(config.HTTP{Listen: "127.0.0.1:80", Socket: "/run/s"}); err != nil || got != (place{Network: "unix", Address: "/run/s"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestHealthcheckIsInterrupted ends with the signal's code, not with "not healthy".
func TestHealthcheckIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (place{Network: "tcp", Address: "127.0.0.1:1"}).ask(ctx, healthy); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
