package web_test

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/web"
)

var at = time.Date(2026, 11, 26, 3, 30, 0, 0, time.UTC)

const hostile = `<script>"'&x`

// reporting is a server whose report is r, and a client of it.
func reporting(t *testing.T, r status.Report) client {
	t.Helper()
	o := options()
	o.Report = func(context.Context) (status.Report, error) { return r, nil }
	return plain(t, start(t, o))
}

// section is what the page has below a heading, up to the next; empty without it.
func section(page, heading string) string {
	_, rest, found := strings.Cut(page, ">"+heading+"</h2>")
	if !found {
		return ""
	}
	text, _, _ := strings.Cut(rest, "<h2")
	return text
}

// words are what a browser shows of HTML, with blanks between the elements.
func words(text string) string {
	text = regexp.MustCompile(`</?time[^>]*>`).ReplaceAllString(text, "")
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(text, " ")), " ")
}

func TestPageShows(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) time.Time { return at.Add(-d) }
	r := status.Report{
		At: at,
		Nodes: []status.Node{
			{Name: "a", Version: "v1", StartedAt: ago(50 * time.Hour)},
			{Name: "b", Version: "v1", Gone: true, SeenAt: ago(30 * time.Second)},
			{Name: "c", Version: "v2", Unreachable: []string{"erp"}, Outdated: []string{"stock"}},
		},
		Observers: []status.Observer{
			{
				ID: "orders", State: status.StateActive, Source: "erp", Recent: status.Recent{Polls: 2, Rows: 1234567, Events: 17},
				Freshness: 20 * time.Second, FreshnessObjective: 15 * time.Minute, Live: 3, Gone: 1, LowWater: "2026-11-26 03:29",
			},
			{ID: "late", State: status.StateActive, Freshness: time.Hour, FreshnessObjective: 15 * time.Minute},
			{ID: "stock", State: status.StatePaused, Pause: &status.Pause{Until: at.Add(2 * time.Hour), By: "alice", Reason: hostile}},
			{ID: "bins", State: status.StateBackoff, LastError: "table " + hostile, Failures: 3, RetryAt: at.Add(time.Minute)},
			{ID: "old", State: status.StateRemoved, Freshness: time.Hour, FreshnessObjective: time.Minute},
		},
		Generations: []status.Generation{{Observer: "orders", Rows: 4711, Of: 9000, StartedAt: ago(time.Hour), Took: 2 * time.Hour}},
		Sinks: []status.Sink{
			{Sink: "file", Stream: "orders", Offset: 10, Last: 1010, Lag: 90 * time.Minute, LastError: "no space left", FailedNode: "a", FailedAt: ago(time.Hour)},
			{Sink: "file", Stream: "stock", Offset: 3, Last: 3, LastError: "no space left", FailedNode: "a", FailedAt: ago(time.Hour)},
			{Sink: "screen", Stream: "orders", Offset: 1010, Last: 1010, Node: "c"},
		},
		Parked:   []status.Parked{{Sink: "screen", Events: 5, Since: ago(time.Hour)}},
		Sweeps:   []status.Sweep{{Observer: "orders", Kind: "reconcile", Before: hostile, Rows: 4711, Events: 3, StartedAt: ago(time.Hour), UpdatedAt: at}},
		Accounts: []status.Account{{ID: "erp/reader", Since: ago(time.Hour), Node: "a", Reason: "ORA-01017: " + hostile}},
		WentBack: []status.WentBack{{Observer: "orders", Node: "a", At: at, Detail: "723 is not " + hostile}},
		LockKinds: []status.LockKind{{
			Subject: "page", Mode: "shared", Locks: 1200, Waiting: 2, Oldest: status.Lock{Name: "front", Holder: "b", AcquiredAt: ago(3 * time.Hour)},
		}},
		Locks: []status.Lock{
			{Key: "a", Name: "free", Holder: "a", Left: 20 * time.Second},
			{Key: "b", Name: "wanted", Holder: "b", Left: -time.Second, Waiting: 2},
			{Key: "c", Ahead: 2 * time.Hour},
		},
		MoreLocks: 52,
	}
	r.Verdict = r.Judge()
	_, page := reporting(t, r).do("GET", "/")
	for heading, want := range map[string][]string{
		"Needs attention":     {"node b 30 s ago it died", "observer bins table &lt;script&gt;"},
		"Event log went back": {"orders a now 723 is not &lt;script&gt;"},
		"Refused accounts":    {"erp/reader a 1 h ago ORA-01017: &lt;script&gt;"},
		"Observers": {
			"5 observers, 1,234,567 rows and 17 events in 10 minutes", "1,234,567 17 20 s ago of 15 min",
			"Paused by alice, until in 2 h: &lt;script&gt;", "Error table &lt;script&gt;", "3 in a row, next attempt in 1 min",
			"4,711 of about 9,000 rows, started 1 h ago, the last took 2 h", "3 there, 1 gone", "Low-water mark 2026-11-26 03:29",
		},
		"Sweeps": {"orders reconcile – &lt;script&gt;&#34;&#39;&amp;x – 4,711 3 1 h ago now"},
		"Sinks": {
			"file failing – 1,000 1 h 30 min 0 no space left on a, 1 h ago Streams in which events wait orders: at 10 of 1,010, the oldest waits for 1 h 30 min",
			"screen degraded c 0 – 5 all of 1 streams delivered",
		},
		"Nodes": {"a started 2 d 2 h ago v1", "b gone last seen 30 s ago v1", "v2 other version Unreachable sources: erp Outdated definition: stock"},
		"Locks": {
			"page shared 1,200 2 front 3 h ago b", "Contended: wanted (2 wait)", "3 locks, and at least 52 more", "wanted b – expired 2 0",
			"free a – in 20 s 0 0", "c not observerd – unknown dated 2 h ahead",
		},
	} {
		shown := words(section(page, heading))
		for _, text := range want {
			if !strings.Contains(shown, text) {
				t.Errorf("%s lacks %q:\n%s", heading, text, shown)
			}
		}
	}
	if late := strings.Count(page, `<span class="bad"><time`); late != 1 {
		t.Errorf("%d observers miss their objective, want 1", late)
	}
	if !strings.Contains(page, `<time datetime="2026-11-26T03:29:30Z" title="2026-11-26 03:29:30 UTC">30 s ago</time>`) {
		t.Error("a time lacks its exact form")
	}
	order := regexp.MustCompile(`<details id="o-([a-z]+)"`).FindAllStringSubmatch(page, -1)
	if got := fmt.Sprint(order); !strings.Contains(got, "bins]") || strings.Index(got, "bins]") > strings.Index(got, "late]") || strings.Index(got, "stock]") < strings.Index(got, "orders]") {
		t.Errorf("observers in the order %s", got)
	}
	wellFormed(t, page)
}

// TestPageHidesWhatIsEmpty has nothing that is unusual.
func TestPageHidesWhatIsEmpty(t *testing.T) {
	t.Parallel()
	r := status.Report{At: at, Nodes: []status.Node{{Name: "a"}}, Observers: []status.Observer{{ID: "orders", State: status.StateActive}}}
	r.Verdict = r.Judge()
	o := options()
	o.Cluster = "north " + hostile
	o.Report = func(context.Context) (status.Report, error) { return r, nil }
	_, page := plain(t, start(t, o)).do("GET", "/")
	for _, heading := range []string{"This node", "Needs attention", "Event log went back", "Refused accounts", "Sweeps", "Sinks", "Locks"} {
		if section(page, heading) != "" {
			t.Errorf("%q is shown", heading)
		}
	}
	for _, want := range []string{"<title>ok · north &lt;script&gt;", "<h1>north &lt;script&gt;", `/static/ok.svg`, ">ok</p>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// wellFormed checks that each element is closed that needs it, and that no id is there twice.
// Cells and rows may end by themselves, and so may items of lists of definitions.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	void := map[string]bool{"meta": true, "link": true, "input": true, "tr": true, "th": true, "td": true, "dt": true, "dd": true}
	d := xml.NewDecoder(strings.NewReader(strings.NewReplacer("<!doctype html>", "", " hidden>", ">", " defer>", ">").Replace(page)))
	d.Strict, d.Entity = false, xml.HTMLEntity
	var open []string
	ids := make(map[string]bool)
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			for _, a := range e.Attr {
				if a.Name.Local == "id" && ids[a.Value] {
					t.Errorf("id %s is there twice", a.Value)
				} else if a.Name.Local == "id" {
					ids[a.Value] = true
				}
			}
			if !void[e.Name.Local] {
				open = append(open, e.Name.Local)
			}
		case xml.EndElement:
			if void[e.Name.Local] {
				continue
			}
			if len(open) == 0 || open[len(open)-1] != e.Name.Local {
				t.Fatalf("</%s> within %v", e.Name.Local, open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("%v are not closed", open)
	}
}

// large is a cluster of 200 observers and 10 nodes, with more of all else than is shown.
func large() status.Report {
	r := status.Report{At: at}
	for n := range 10 {
		node := status.Node{Name: fmt.Sprintf("observerd-%d", n), Version: "v1.2.3", ConfigHash: "0123456789ab", StartedAt: at.Add(-time.Hour), SeenAt: at}
		for i := range 20 {
			node.Types = append(node.Types, fmt.Sprintf("type-%02d", i))
		}
		r.Nodes = append(r.Nodes, node)
	}
	for i := range 200 {
		o := status.Observer{
			ID: fmt.Sprintf("warehouse-orders-%03d", i), Type: fmt.Sprintf("type-%02d", i%20), Source: "warehouse", State: status.StateActive,
			Interval: 30 * time.Second, NextPollAt: at.Add(12 * time.Second), TurnAt: at, LastOKAt: at, Recent: status.Recent{Polls: 20, Rows: 123456, Events: 12345},
			Events: 123456789, Live: 1234567, Freshness: 13 * time.Second, FreshnessObjective: 15 * time.Minute, LowWater: "2026-11-26 03:29:00", Newest: "2026-11-26 03:29:00",
		}
		if i%10 == 0 {
			o.State, o.LastError = status.StateBackoff, "query: read rows: permission denied for table orders"
		}
		r.Observers = append(r.Observers, o)
		for n := range 60 {
			r.Past = append(r.Past, status.PastPoll{
				Observer: o.ID, Type: o.Type, Node: fmt.Sprintf("observerd-%d", (n+i%20)%10), TurnAt: at.Add(time.Duration(n-60) * 30 * time.Second),
				FinishedAt: at.Add(time.Duration(n-60) * 30 * time.Second), Duration: time.Duration(1+(i*7+n*n*13)%900) * time.Millisecond,
				Outcome: []string{"ok", "error"}[(n / 59)], Poison: int64(n % 7 / 6),
			})
		}
		for sink := range 5 {
			r.Sinks = append(r.Sinks, status.Sink{Sink: fmt.Sprint("sink-", sink), Stream: o.ID, Offset: 100, Last: 100 + int64(sink), Lag: time.Second})
		}
		r.Locks = append(r.Locks, status.Lock{Key: fmt.Sprint(i), Name: "lock:" + o.ID, Holder: "observerd-1", Left: time.Minute, AcquiredAt: at, Subject: "page", Mode: "exclusive"})
	}
	for i := range 10 {
		r.LockKinds = append(r.LockKinds, status.LockKind{Subject: fmt.Sprint("subject-", i), Mode: "exclusive", Locks: 500, Oldest: r.Locks[i]})
	}
	r.Verdict = r.Judge()
	return r
}

func TestPageOfALargeClusterIsSmall(t *testing.T) {
	t.Parallel()
	r := large()
	for name, times := range map[string]int{"200 observers": 1, "10,000 observers": 50} {
		many := r
		many.Observers = nil
		for i := range times {
			for _, o := range r.Observers {
				o.ID = fmt.Sprint(o.ID, strings.Repeat("-", min(i, 1)), strings.TrimPrefix(fmt.Sprint(i), "0"))
				many.Observers = append(many.Observers, o)
			}
		}
		_, page := reporting(t, many).do("GET", "/")
		t.Logf("%s: %d bytes", name, len(page))
		if len(page) > 100<<10 {
			t.Errorf("%s: the page has %d bytes", name, len(page))
		}
		if n := strings.Count(page, "<tr><th scope="); n < 230 {
			t.Errorf("%s: %d rows", name, n)
		}
		if n := strings.Count(page, "60 polls, 1 failed"); times == 1 && n < 40 {
			t.Errorf("%s: %d strips", name, n)
		}
		wellFormed(t, page)
	}
}

// TestStripEndsWithTheReport has a poll end after the report was read: the script takes the last of the
// other ones for that of the last bar.
func TestStripEndsWithTheReport(t *testing.T) {
	t.Parallel()
	r := status.Report{At: at, Observers: []status.Observer{{ID: "orders"}}}
	for i := range 3 {
		r.Past = append(r.Past, status.PastPoll{Observer: "orders", FinishedAt: at.Add(time.Duration(i-1) * time.Second), Outcome: "ok"})
	}
	if _, page := reporting(t, r).do("GET", "/"); !strings.Contains(page, "2 polls, 0 failed") || !strings.Contains(page, `<time id="at" hidden>`+at.UTC().Format("2006-01-02T15:04:05.000Z")) {
		t.Error(page)
	}
}

// TestPageShowsWork has two nodes, one of which came half an hour ago, and turns by turns.
func TestPageShowsWork(t *testing.T) {
	t.Parallel()
	r := status.Report{At: at, Nodes: []status.Node{
		{Name: "a", Types: []string{"order"}, StartedAt: at.Add(-2 * time.Hour)}, {Name: "b", Types: []string{"order"}, StartedAt: at.Add(-30 * time.Minute)},
	}}
	for i := range 59 {
		tick := at.Add(time.Duration(i-59) * time.Minute)
		node := "a"
		if i >= 30 && i%2 == 0 {
			node = "b"
		}
		for _, id := range []string{"x", "y"} { // Two polls, one turn.
			r.Past = append(r.Past, status.PastPoll{Observer: id, Type: "order", Node: node, TurnAt: tick, FinishedAt: tick, Outcome: "ok"})
		}
	}
	_, page := reporting(t, r).do("GET", "/")
	shown := section(page, "Nodes")
	if text := words(shown); !strings.Contains(text, "over 59 turns") || !strings.Contains(text, "order 44 15") || !regexp.MustCompile(`Balance (9\d|100) of 100`).MatchString(text) {
		t.Error(text)
	}
	if strings.Count(shown, `<path class="c`) != 2 {
		t.Errorf("the shares:\n%s", shown)
	}
}

// TestETag: the page is sent again when it says something else, and not because time passes.
func TestETag(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	o := options()
	o.Report = func(context.Context) (status.Report, error) {
		n := asked.Add(1)
		return status.Report{At: at.Add(time.Duration(n) * time.Minute), Nodes: []status.Node{{Name: "a", StartedAt: at, Version: fmt.Sprint("v", n/3)}}}, nil
	}
	c := plain(t, start(t, o))
	first, page := c.do("GET", "/")
	tag := first.Header.Get("ETag")
	if tag == "" || !strings.Contains(page, "1 min ago") {
		t.Fatalf("tag %q:\n%s", tag, page)
	}
	withTag := func(r *http.Request) { r.Header.Set("If-None-Match", tag) }
	for asked.Load() < 3 {
		n := asked.Load()
		again, page := c.do("GET", "/", withTag)
		if changed := asked.Load() > 2; !changed && (again.StatusCode != http.StatusNotModified || page != "") || changed && (again.StatusCode != http.StatusOK || again.Header.Get("ETag") == tag) {
			t.Fatalf("after %d readings: %s", asked.Load(), again.Status)
		}
		if asked.Load() == n {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// TestManyViewersAreOneReading asks from many sides while the database answers slowly. The
// first of them leaves.
func TestManyViewersAreOneReading(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	begun, release := make(chan struct{}), make(chan struct{})
	o := options()
	o.Report = func(ctx context.Context) (status.Report, error) {
		if asked.Add(1) == 1 {
			close(begun)
		}
		select {
		case <-release:
		case <-ctx.Done():
			return status.Report{}, ctx.Err()
		}
		return status.Report{At: at, Nodes: []status.Node{{Name: "known"}}}, nil
	}
	s := start(t, o)
	gone := visit(t, s)
	<-begun
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	var viewers sync.WaitGroup
	for range 50 {
		viewers.Go(func() {
			if _, page := plain(t, s).do("GET", "/"); !strings.Contains(page, "known") {
				t.Error(page)
			}
		})
	}
	time.Sleep(100 * time.Millisecond) // So that they wait; who comes later is shown the same.
	close(release)
	viewers.Wait()
	if n := asked.Load(); n != 1 && n != 2 { // The last ones may come a second later.
		t.Errorf("%d readings", n)
	}
}

// visit asks for the page and does not read it.
func visit(t *testing.T, s *web.Server) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestPageWithTheDatabaseDown shows what was known, and logs one outage once.
func TestPageWithTheDatabaseDown(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var said strings.Builder
	o := options()
	o.Logger = slog.New(slog.NewTextHandler(&said, nil))
	o.Stuck = func() []string { return []string{"schedule/order"} }
	o.Report = func(context.Context) (status.Report, error) {
		if asked.Add(1) > 1 {
			return status.Report{}, errors.New("no such host")
		}
		return status.Report{At: at, Nodes: []status.Node{{Name: "known"}}}, nil
	}
	s := start(t, o)
	c := plain(t, s)
	c.do("GET", "/")
	var page string
	for asked.Load() < 3 {
		_, page = c.do("GET", "/")
		time.Sleep(50 * time.Millisecond)
	}
	for _, want := range []string{
		"<title>unknown ·", `class="unknown"`, "/static/unknown.svg", "they say: no such host", "these loops hang: schedule/order", "What follows was read <time", "known</h3>",
		"Cluster status unavailable: they say", "It was first missed <time",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(said.String(), "Status page without data"); n != 1 {
		t.Errorf("said %d times:\n%s", n, said.String())
	}
}

func TestStaticFiles(t *testing.T) {
	t.Parallel()
	r := status.Report{At: at}
	r.Verdict = r.Judge()
	c := reporting(t, r)
	resp, page := c.do("GET", "/")
	policy := resp.Header.Get("Content-Security-Policy")
	if strings.Contains(policy, "unsafe") || !strings.Contains(policy, "script-src 'self'") || regexp.MustCompile(`<style|<script>|\son\w+=|\sstyle=`).MatchString(page) {
		t.Errorf("policy %q for\n%s", policy, page)
	}
	urls := regexp.MustCompile(`(?:href|src)="(/static/[^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(urls) != 3 {
		t.Fatalf("%q", urls)
	}
	for _, url := range urls {
		resp, body := c.do("GET", url[1])
		if resp.StatusCode != http.StatusOK || body == "" || !strings.Contains(resp.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %s, %q", url[1], resp.Status, resp.Header.Get("Cache-Control"))
		}
	}
	if resp, _ := c.do("GET", "/static/page.html"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("the template: %s", resp.Status)
	}
}
