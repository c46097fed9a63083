package cluster_test

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/pgtest"
)

// pair is a primary and its standby, and the memory of nodes whose URL names both.
type pair struct {
	primary, standby *pgtest.Server
	memory           memory
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{primary: pgtest.Start(t, pgtest.Options{})}
	p.standby = p.primary.Standby(t)
	u := bothHosts(t, p.primary, p.standby)
	p.memory = remember(t, u+"&target_session_attrs=read-write")
	p.memory.url = u
	return p
}

// bothHosts is a URL that names the servers in this order.
func bothHosts(t *testing.T, servers ...*pgtest.Server) string {
	t.Helper()
	u, err := url.Parse(servers[0].URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())))
	}
	u.Host = strings.Join(hosts, ",")
	return u.String()
}

// says runs statements on one server, each by itself.
func says(t *testing.T, server *pgtest.Server, statements ...string) {
	t.Helper()
	must(t, pgtest.Execute(t.Context(), server.URL("postgres"), statements...))
}

// waitsFor makes the primary answer a commit only when the standby has it too.
func (p *pair) waitsFor(t *testing.T) {
	t.Helper()
	says(t, p.primary, `ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`)
	m := remember(t, p.primary.URL("postgres"))
	m.becomes(t, `SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'`)
}

// promote makes the standby the primary, and one of nobody.
func (p *pair) promote(t *testing.T) {
	t.Helper()
	says(t, p.standby, `ALTER SYSTEM SET synchronous_standby_names = ''`, `SELECT pg_reload_conf()`, `SELECT pg_promote()`)
}

// TestFailoverToASynchronousStandby loses the primary while two nodes are at work.
// All that was answered is on the standby, so nobody says that anything is amiss.
func TestFailoverToASynchronousStandby(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.waitsFor(t)
	source := openPostgres(t)
	h := newHost(t, p.memory, source.url)
	nodes := []*daemon{h.start(t, "a", settings{}).ready(t), h.start(t, "b", settings{}).ready(t)}
	quiet := source.busy(t)
	grows(t, p.memory)
	down(t, p.primary, pgtest.Immediate)
	p.promote(t)
	for _, d := range nodes {
		d.ready(t)
	}
	grows(t, p.memory)
	quiet()
	checkHistory(t, p.memory, h.sink(), source.rows(t))
	for _, d := range nodes {
		d.ready(t)
	}
}
