package cluster_test

import (
	"bytes"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/torture"
)

// through puts a proxy before the server of a URL.
func through(t *testing.T, direct string) (string, *netfault.Proxy) {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal("the URL of a test's database cannot be read")
	}
	proxy := netfault.Start(t, u.Host)
	u.Host = proxy.Addr()
	return u.String(), proxy
}

// commitOf recognises the statement that commits a chunk with that row.
func commitOf(row string) func(request []byte) bool {
	return func(request []byte) bool {
		return torture.IsCommit(request) && bytes.Contains(request, []byte(row))
	}
}

// strike injects the fault once, at the nth request of those that match, and
// closes the channel when it does.
func strike(proxy *netfault.Proxy, matches func([]byte) bool, nth int, fault netfault.Fault) <-chan struct{} {
	struck := make(chan struct{})
	var mu sync.Mutex
	proxy.Inspect(func(request []byte) netfault.Fault {
		if !matches(request) {
			return netfault.Fault{}
		}
		mu.Lock()
		defer mu.Unlock()
		if nth--; nth != 0 {
			return netfault.Fault{}
		}
		close(struck)
		return fault
	})
	return struck
}

// TestCommitOfASleeperIsRefused stops a node when its commit is on the way,
// lets its lease end and another node poll the same rows, and only then lets
// the commit arrive.
func TestCommitOfASleeperIsRefused(t *testing.T) {
	t.Parallel()
	m := remember(t, pgtest.New(t))
	source := openPostgres(t)
	h := newHost(t, m, source.url)
	proxied, proxy := through(t, m.url)
	a := h.start(t, "a", settings{database: proxied}).ready(t)
	release := make(chan struct{})
	held := strike(proxy, commitOf("slept-over"), 1, netfault.Fault{Hold: release})
	source.order(t, "slept-over")
	received(t, held, "the commit of a")
	a.signal(t, syscall.SIGSTOP)
	h.start(t, "b", settings{})
	eventually(t, func() error {
		log, err := m.logged(t)
		if err != nil {
			return err
		}
		return difference("orders", lastStatus(log, "orders"), map[string]string{"slept-over": "NEW"})
	})
	close(release)
	a.signal(t, syscall.SIGCONT)
	eventually(t, func() error { return a.counted(t, "observerd_stale_commits_refused_total") })
	source.order(t, "afterwards")
	checkHistory(t, m, h.sink(), source.rows(t))
}

// TestConnectionIsCutInACommit breaks the connection of a running node between
// a commit and its answer, or lets the commit arrive when its client is gone.
func TestConnectionIsCutInACommit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault   netfault.Fault
		outcome string
	}{
		"the answer is lost":     {netfault.Fault{LoseAnswer: true}, `outcome="committed"`},
		"an orphan arrives late": {netfault.Fault{Late: time.Millisecond}, `outcome="aborted"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := remember(t, pgtest.New(t))
			source := openPostgres(t)
			h := newHost(t, m, source.url)
			proxied, proxy := through(t, m.url)
			a := h.start(t, "a", settings{database: proxied}).ready(t)
			quiet := source.busy(t)
			resolved := make(chan struct{})
			if tc.fault.Late > 0 { // It must not arrive before the node has looked for it.
				tc.fault.Hold = resolved
			}
			struck := strike(proxy, commitOf("unanswered"), 1, tc.fault)
			source.order(t, "unanswered")
			received(t, struck, "the commit")
			eventually(t, func() error {
				return a.counted(t, "observerd_unknown_commits_resolved_total", tc.outcome)
			})
			close(resolved)
			source.order(t, "afterwards")
			quiet()
			checkHistory(t, m, h.sink(), source.rows(t))
		})
	}
}

// TestRowCommitsBelowAChunkThatACrashLeft kills a node between two chunks of a
// poll and lets a row appear below the first of them.
func TestRowCommitsBelowAChunkThatACrashLeft(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		source := openPostgres(t)
		h := newHost(t, m, source.url)
		tx, err := source.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		// Its timestamp lies before those of all orders that the node will see.
		if _, err := tx.ExecContext(t.Context(), `INSERT INTO orders VALUES ('late', 'NEW', now())`); err != nil {
			t.Fatal(err)
		}
		source.orders(t, "early", 2000)
		// Beyond the margin that a source allows for clocks.
		eventually(t, source.olderThan(t, 2500*time.Millisecond))
		proxied, proxy := through(t, source.url)
		proxy.SetImpairment(netfault.Impairment{Bandwidth: 10_000}) // The orders take some ten seconds.
		a := h.start(t, "a", settings{source: proxied})
		first := killBetweenChunks(t, m, a, 2000)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d of 2000 orders were committed when the node was killed", first)
		h.start(t, "b", settings{})
		checkHistory(t, m, h.sink(), source.rows(t))
	})
}

// killBetweenChunks kills a node that has committed some chunks of its first
// poll, and not all of the rows. It returns how many.
func killBetweenChunks(t *testing.T, m memory, d *daemon, all int64) (committed int64) {
	t.Helper()
	eventually(t, func() (err error) {
		committed, err = m.number(t, `SELECT count(*) FROM obs_event WHERE stream = 'orders'`)
		if err == nil && committed == 0 {
			err = errNothingYet
		}
		return err
	})
	d.kill()
	committed, err := m.number(t, `SELECT count(*) FROM obs_event WHERE stream = 'orders'`)
	if err != nil || committed == 0 || committed >= all {
		t.Fatalf("%d of %d orders were committed at the kill (%v): it was not between two chunks", committed, all, err)
	}
	return committed
}
