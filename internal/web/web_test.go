package web_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server and returns a way to ask it.
func serve(t *testing.T, change func(*web.Options)) func(method, path string) (int, string) {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "observerd_test_total", Help: "x"}))
	o := web.Options{
		Listen: "127.0.0.1:0", Node: "node-a", Version: "v1", Gatherer: reg, Logger: slog.New(slog.DiscardHandler),
		Stuck: func() []string { return nil },
		Ready: func(context.Context) error { return nil },
		Report: func(context.Context) (status.Report, error) {
			return status.Report{
				Backend: "sqlite", At: time.Now(),
				Nodes:     []status.Node{{Name: "<script>alert(1)</script>"}},
				Polls:     []status.Poll{{Observer: "orders", Outcome: "error", Reason: "a poll that failed"}},
				Observers: []status.Observer{{ID: "orders", State: status.StateBackoff, LastError: "table is missing"}},
			}, nil
		},
	}
	if change != nil {
		change(&o)
	}
	s, err := web.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		for range 2 {
			if err := s.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	return func(method, path string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	down := errors.New("no such host")
	for name, tc := range map[string]struct {
		change func(*web.Options)
		path   string
		code   int
		holds  string
	}{
		"healthy":           {nil, "/healthz", 200, "ok"},
		"stuck":             {func(o *web.Options) { o.Stuck = func() []string { return []string{"schedule/order"} } }, "/healthz", 503, "schedule/order"},
		"healthy when down": {func(o *web.Options) { o.Ready = func(context.Context) error { return down } }, "/healthz", 200, "ok"},
		"ready":             {nil, "/readyz", 200, "ready"},
		"not ready":         {func(o *web.Options) { o.Ready = func(context.Context) error { return down } }, "/readyz", 503, "no such host"},
		"metrics":           {nil, "/metrics", 200, "observerd_test_total 0"},
		"page":              {nil, "/", 200, "table is missing"},
		"page shows polls":  {nil, "/", 200, "a poll that failed"},
		"page escapes":      {nil, "/", 200, "&lt;script&gt;"},
		"page when down": {func(o *web.Options) {
			o.Report = func(context.Context) (status.Report, error) { return status.Report{}, down }
		}, "/", 200, "does not answer"},
		"unknown": {nil, "/nope", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, body := serve(t, tc.change)("GET", tc.path)
			if code != tc.code || !strings.Contains(body, tc.holds) {
				t.Errorf("%s: %d\n%s", tc.path, code, body)
			}
		})
	}
}

func TestNothingCanBeChanged(t *testing.T) {
	t.Parallel()
	ask := serve(t, nil)
	for _, path := range []string{"/", "/healthz", "/readyz", "/metrics"} {
		if code, _ := ask("POST", path); code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, code)
		}
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	first, err := web.New(t.Context(), web.Options{Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Gatherer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Stop(context.Background()) }()
	taken := first.Addr()
	if _, err := web.New(t.Context(), web.Options{Listen: taken, Logger: slog.New(slog.DiscardHandler), Gatherer: prometheus.NewRegistry()}); err == nil || !strings.Contains(err.Error(), "http.listen") {
		t.Errorf("listening twice: %v", err)
	}
}
