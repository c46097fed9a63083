package web_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
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
		"metrics":           {nil, "/metrics", 200, "observerd_test_total 0"},
		"page":              {nil, "/", 200, "table is missing"},
		"page shows polls":  {nil, "/", 200, "a poll that failed"},
		"page escapes":      {nil, "/", 200, "&lt;script&gt;"},
		"page when down": {func(o *web.Options) {
			o.Report = func(context.Context) (status.Report, error) { return status.Report{}, down }
		}, "/", 200, "<p class=\"bad\">Nothing can be shown of the cluster: they say: no such host</p>"},
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
	for _, word := range []string{"postgres", "never", "UTC", "<table", "none"} {
		if strings.Contains(shown, word) {
			t.Errorf("%q is shown:\n%s", word, body)
		}
	}
}

// section is what the page has below a heading, up to the next.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "<h2>"+heading+"</h2>")
	if !found {
		t.Fatalf("no heading %q:\n%s", heading, page)
	}
	text, _, _ := strings.Cut(rest, "<h2>")
	return text
}

func TestPageShowsWhoIsGone(t *testing.T) {
	t.Parallel()
	o := options()
	o.Report = func(context.Context) (status.Report, error) {
		return status.Report{Nodes: []status.Node{{Name: "a"}, {Name: "b", Gone: true}}}, nil
	}
	_, body := plain(t, start(t, o)).do("GET", "/")
	if text := section(t, body, "Nodes"); !strings.Contains(text, "<td>a</td>") || !strings.Contains(text, `<td>b <span class="bad">gone</span></td>`) {
		t.Errorf("the nodes:\n%s", text)
	}
}

func TestPageShowsLocks(t *testing.T) {
	t.Parallel()
	o := options()
	o.Report = func(context.Context) (status.Report, error) {
		return status.Report{Locks: []status.Lock{
			{Key: "a", Name: "order", Holder: "node-a", Left: 20 * time.Second},
			{Key: "b", Name: "wes", Holder: "node-b", Left: -time.Second},
			{Key: "c", Name: "stock", Holder: "node-c", Ahead: time.Hour},
			{Key: "d", Ahead: 2 * time.Hour},
		}}, nil
	}
	_, body := plain(t, start(t, o)).do("GET", "/")
	text := section(t, body, "Locks")
	for _, row := range []string{
		"<td>order</td><td>node-a</td><td>0</td><td>20s</td>",
		"<td>wes</td><td>node-b</td><td>0</td><td>expired</td>",
		`<td>stock</td><td>node-c</td><td>0</td><td>expired <span class="bad">dated 1h0m0s ahead</span></td>`,
		`<td>d</td><td>not observerd</td><td>0</td><td>unknown <span class="bad">dated 2h0m0s ahead</span></td>`,
	} {
		if !strings.Contains(text, row) {
			t.Errorf("no %s:\n%s", row, text)
		}
	}
}

// TestPageSaysWhy has an observer that is paused and a sink that stores nothing.
func TestPageSaysWhy(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 26, 3, 30, 0, 0, time.UTC)
	o := options()
	o.Report = func(context.Context) (status.Report, error) {
		return status.Report{
			Observers: []status.Observer{
				{ID: "orders", State: status.StatePaused, Pause: &status.Pause{Until: at, By: "alice", Reason: "<b>the move"}, Recent: status.Recent{Polls: 2, Events: 17}},
				{ID: "stock", State: status.StatePaused, Pause: &status.Pause{}},
			},
			Sinks: []status.Sink{{Sink: "file", Stream: "orders", LastError: "no space left", FailedNode: "node-a", FailedAt: at}, {Sink: "screen", Stream: "orders"}},
		}, nil
	}
	_, body := plain(t, start(t, o)).do("GET", "/")
	for heading, want := range map[string][]string{
		"Observers": {
			`paused <span class="dim">until 2026-11-26 03:30:00 by alice: &lt;b&gt;the move</span></td><td>never</td><td>17</td>`,
			`paused <span class="dim"></span></td><td>never</td><td>-</td>`,
		},
		"Sinks": {`<td class="bad">on node-a, since 2026-11-26 03:30:00: no space left</td>`, `<td class="bad"></td>`},
	} {
		for _, text := range want {
			if shown := section(t, body, heading); !strings.Contains(shown, text) {
				t.Errorf("no %s:\n%s", text, shown)
			}
		}
	}
}

func TestPageShowsSweeps(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 30, 0, 0, time.UTC)
	o := options()
	_, body := plain(t, start(t, o)).do("GET", "/")
	if text := section(t, body, "Sweeps"); !strings.Contains(text, "none runs") {
		t.Errorf("without sweeps:\n%s", text)
	}
	o.Report = func(context.Context) (status.Report, error) {
		return status.Report{At: at, Sweeps: []status.Sweep{
			{Observer: "orders", Kind: "reconcile", Before: "<b>2026-11-20", Position: "2026-11-19", Rows: 4711, Events: 3, StartedAt: at.Add(-time.Hour), UpdatedAt: at},
			{Observer: "tasks", Kind: "backfill", From: "2020-01-01"},
		}}, nil
	}
	_, body = plain(t, start(t, o)).do("GET", "/")
	text := section(t, body, "Sweeps")
	for _, want := range []string{
		"<tr><td>orders</td><td>reconcile</td><td>-</td><td>&lt;b&gt;2026-11-20</td><td>2026-11-19</td><td>4711</td><td>3</td>" +
			"<td>2026-11-21 02:30:00</td><td>2026-11-21 03:30:00</td></tr>",
		"<tr><td>tasks</td><td>backfill</td><td>2020-01-01</td><td>-</td><td>-</td><td>0</td><td>0</td><td>never</td><td>never</td></tr>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestPageShowsGenerations(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 30, 0, 0, time.UTC)
	o := options()
	_, body := plain(t, start(t, o)).do("GET", "/")
	if text := section(t, body, "Reading all rows"); !strings.Contains(text, "no observer does") {
		t.Errorf("without any:\n%s", text)
	}
	o.Report = func(context.Context) (status.Report, error) {
		return status.Report{At: at, Generations: []status.Generation{
			{Observer: "<b>", Rows: 4711, Of: 9000, StartedAt: at},
			{Observer: "stock", Rows: 30, Of: 20, StartedAt: at.Add(-time.Hour), FinishedAt: at, Took: time.Hour},
		}}, nil
	}
	_, body = plain(t, start(t, o)).do("GET", "/")
	text := section(t, body, "Reading all rows")
	for _, want := range []string{
		"<tr><td>&lt;b&gt;</td><td>4711</td><td>9000</td><td>2026-11-21 03:30:00</td><td>not yet</td><td>-</td></tr>",
		"<tr><td>stock</td><td>30</td><td>-</td><td>2026-11-21 02:30:00</td><td>2026-11-21 03:30:00</td><td>1h0m0s</td></tr>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestPageShowsRefusedAccounts(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 30, 0, 0, time.UTC)
	o := options()
	_, body := plain(t, start(t, o)).do("GET", "/")
	if text := section(t, body, "Refused accounts"); !strings.Contains(text, ">none<") {
		t.Errorf("without refused accounts:\n%s", text)
	}
	o.Report = func(context.Context) (status.Report, error) {
		return status.Report{At: at, Accounts: []status.Account{
			{ID: "erp/reader", Since: at.Add(-time.Hour), Node: "a", Reason: "ORA-01017: <i>denied"},
			{ID: "wms/reader", Since: at.Add(-time.Hour), Node: "b", Reason: "ORA-28000: locked"},
		}}, nil
	}
	_, body = plain(t, start(t, o)).do("GET", "/")
	text := section(t, body, "Refused accounts")
	for _, want := range []string{
		`<tr><td>erp/reader</td><td>a</td><td>2026-11-21 02:30:00</td><td class="bad">ORA-01017: &lt;i&gt;denied</td></tr>`,
		`<tr><td>wms/reader</td><td>b</td><td>2026-11-21 02:30:00</td><td class="bad">ORA-28000: locked</td></tr>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestPageShowsThatTheLogWentBack(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 30, 0, 0, time.UTC)
	o := options()
	const title = "Event log went back"
	if _, body := plain(t, start(t, o)).do("GET", "/"); strings.Contains(body, title) {
		t.Errorf("it did not:\n%s", body)
	}
	o.Report = func(context.Context) (status.Report, error) {
		return status.Report{At: at, WentBack: []status.WentBack{{Observer: "orders", Node: "a", At: at, Detail: "723 <i>is not"}}}, nil
	}
	_, body := plain(t, start(t, o)).do("GET", "/")
	const want = `<tr><td>orders</td><td>a</td><td>2026-11-21 03:30:00</td><td class="bad">723 &lt;i&gt;is not</td></tr>`
	if text := section(t, body, title); !strings.Contains(text, want) {
		t.Errorf("no %s in\n%s", want, text)
	}
}

// TestAVisitorWhoLeavesIsNoWarning cuts off requests for the page, as anybody can
// who comes in.
func TestAVisitorWhoLeavesIsNoWarning(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	o := options()
	o.Logger = slog.New(slog.NewTextHandler(&said, nil))
	asked, left := make(chan struct{}), make(chan struct{})
	o.Report = func(ctx context.Context) (status.Report, error) {
		close(asked)
		<-ctx.Done()
		close(left)
		return status.Report{}, ctx.Err()
	}
	s := start(t, o)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	<-left
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if strings.Contains(said.String(), "without data") {
		t.Error(said.String())
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
		"<title>failing - observerd", `<p class="level failing">failing: 1 thing needs attention</p>`, "observer &lt;orders&gt;", "column qty is not there",
		"<code>observerd observers show orders</code>", `docs/runbooks/ObserverdTypeNotSucceeding.md">`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
}
