package cluster_test

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/netfault"
)

// holdRead holds the first read of a table until it is released, and closes the
// channel that it returns when that has come.
func holdRead(proxy *netfault.Proxy, table string, release <-chan struct{}) <-chan struct{} {
	reading := make(chan struct{})
	var once sync.Once
	proxy.Inspect(func(request []byte) (fault netfault.Fault) {
		if bytes.Contains(request, []byte(table)) {
			once.Do(func() {
				close(reading)
				fault.Hold = release
			})
		}
		return fault
	})
	return reading
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
		proxied, proxy := netfault.StartBefore(t, source.url)
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
	const query = `SELECT count(*) FROM obs_event WHERE stream = 'orders'`
	m.becomes(t, query)
	d.Kill()
	committed, err := m.number(t, query)
	if err != nil || committed == 0 || committed >= all {
		t.Fatalf("%d of %d orders were committed at the kill (%v): it was not between two chunks", committed, all, err)
	}
	return committed
}
