package web_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/web"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

// options are those of a node that works, on a free port of the loopback.
func options() web.Options {
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "observerd_test_total", Help: "x"}))
	return web.Options{
		Listen: "127.0.0.1:0", Node: "node-a", Version: "v1", Gatherer: reg, Logger: slog.New(slog.DiscardHandler),
		Stuck:   func() []string { return nil },
		Ready:   func(context.Context) error { return nil },
		Explain: func(err error) string { return "they say: " + err.Error() },
		Report: func(context.Context) (status.Report, error) {
			return status.Report{
				Backend: "sqlite", At: time.Now(),
				Nodes:     []status.Node{{Name: "<script>alert(1)</script>"}},
				Polls:     []status.Poll{{Observer: "orders", Outcome: "error", Reason: "a poll that failed"}},
				Observers: []status.Observer{{ID: "orders", State: status.StateBackoff, LastError: "table is missing"}},
			}, nil
		},
	}
}

// start runs a server until the test ends.
func start(t *testing.T, o web.Options) *web.Server {
	t.Helper()
	s, err := web.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		for range 2 {
			if err := s.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

// client asks a server over one transport, without keeping connections.
type client struct {
	t         *testing.T
	base      string
	transport *http.Transport
}

// reply is an answer whose body was read.
type reply struct {
	StatusCode, ProtoMajor int
	Status, Proto          string
	Header                 http.Header
	TLS                    *tls.ConnectionState
}

// do sends a request and returns the answer with its text.
func (c client) do(method, path string, change ...func(*http.Request)) (reply, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, f := range change {
		f(req)
	}
	resp, err := (&http.Client{Transport: c.transport}).Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.ProtoMajor, resp.Status, resp.Proto, resp.Header, resp.TLS}, string(body)
}

// plain asks the address without TLS.
func plain(t *testing.T, s *web.Server) client {
	return client{t, "http://" + s.Addr(), &http.Transport{DisableKeepAlives: true}}
}

// overSocket asks the Unix socket.
func overSocket(t *testing.T, path string) client {
	return client{t, "http://localhost", &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
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
		"no answer":         {func(o *web.Options) { o.Ready = func(ctx context.Context) error { return inTime(ctx, 3*time.Second) } }, "/readyz", 503, "waited"},
		"metrics":           {nil, "/metrics", 200, "observerd_test_total 0"},
		"page":              {nil, "/", 200, "table is missing"},
		"page escapes":      {nil, "/", 200, "&lt;script&gt;"},
		"page when down": {func(o *web.Options) {
			o.Report = func(context.Context) (status.Report, error) { return status.Report{}, down }
		}, "/", 200, "Cluster status unavailable: they say: no such host</p>"},
		"page warns": {func(o *web.Options) { o.Exposed = func() bool { return true } }, "/", 200, "http.insecure"},
		"unknown":    {nil, "/nope", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			if tc.change != nil {
				tc.change(&o)
			}
			resp, body := plain(t, start(t, o)).do("GET", tc.path)
			if resp.StatusCode != tc.code || !strings.Contains(body, tc.holds) {
				t.Errorf("%s: %d\n%s", tc.path, resp.StatusCode, body)
			}
		})
	}
}

// inTime waits for the end of ctx, which must not be later than the patience of who asks.
func inTime(ctx context.Context, patience time.Duration) error {
	if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > patience {
		return errors.New("the answer may come too late")
	}
	<-ctx.Done()
	return errors.New("waited")
}

// TestPageWithoutDataShowsNone has a database that is down: a table that says
// "none" would be taken for the state of the cluster.
func TestPageWithoutDataShowsNone(t *testing.T) {
	t.Parallel()
	o := options()
	o.Report = func(context.Context) (status.Report, error) {
		return status.Report{Backend: "postgres"}, errors.New("<b>down")
	}
	_, body := plain(t, start(t, o)).do("GET", "/")
	if !strings.Contains(body, "&lt;b&gt;down") || !strings.HasSuffix(strings.TrimSpace(body), "</html>") {
		t.Errorf("it does not say why, or breaks off:\n%s", body)
	}
	_, shown, _ := strings.Cut(body, "<body>")
	for _, word := range []string{"postgres", "<table", "Observers", "Nodes"} {
		if strings.Contains(shown, word) {
			t.Errorf("%q is shown:\n%s", word, body)
		}
	}
}

// TestPageBeginsWithTheVerdict has one thing that needs attention.
func TestPageBeginsWithTheVerdict(t *testing.T) {
	t.Parallel()
	o := options()
	o.Report = func(context.Context) (status.Report, error) {
		return status.Report{Verdict: status.Verdict{Level: status.LevelFailing, Attention: []status.Attention{{
			Level: status.LevelFailing, What: "observer <orders>", Why: "column qty is not there", Command: "observerd observers show orders", Runbook: "ObserverdTypeNotSucceeding",
		}}}}, nil
	}
	_, body := plain(t, start(t, o)).do("GET", "/")
	for _, want := range []string{
		"<title>failing · node-a · observerd</title>", `href="/static/failing.svg?v=`, `<p id="verdict" class="failing" role="status">failing: 1 thing needs attention</p>`, "observer &lt;orders&gt;", "column qty is not there",
		"<code>observerd observers show orders</code>", `docs/runbooks/ObserverdTypeNotSucceeding.md">`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
}

// TestMetricsThatNobodyReads has clients ask for metrics and hang up. Their own fault is
// logged at DEBUG, a metric that cannot be collected at WARN.
func TestMetricsThatNobodyReads(t *testing.T) {
	t.Parallel()
	log, o := new(lines), options()
	o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	reg := prometheus.NewRegistry()
	many := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "observerd_test", Help: "x"}, []string{"n"})
	for n := range 5000 {
		many.WithLabelValues(strconv.Itoa(n)).Set(1)
	}
	reg.MustRegister(many)
	o.Gatherer = reg
	s := start(t, o)
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(log.String(), "error encoding"); {
		if time.Now().After(deadline) {
			t.Fatalf("no write has failed:\n%s", log)
		}
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(c, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 50))
		if err = errors.Join(err, c.(*net.TCPConn).SetLinger(0), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(log.String(), "WARN") {
		t.Errorf("a client that hangs up is worth a warning:\n%s", log)
	}
	reg.MustRegister(invalid{prometheus.NewDesc("observerd_broken", "x", nil, nil)})
	plain(t, s).do("GET", "/metrics")
	if !strings.Contains(log.String(), `level=WARN msg="Metrics not delivered" err="error gathering metrics:`) {
		t.Errorf("a metric that cannot be collected is not worth a warning:\n%s", log)
	}
}

// invalid is a metric that cannot be collected.
type invalid struct{ desc *prometheus.Desc }

func (i invalid) Describe(to chan<- *prometheus.Desc) { to <- i.desc }

func (i invalid) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(i.desc, errors.New("broken"))
}

// lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
