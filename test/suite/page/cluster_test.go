package page_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/testbed"
)

// cluster is two nodes that share a coordination database, and poll two sources.
type cluster struct {
	bed          testbed.Testbed
	north, south *daemon.Process
	// shop and bank are the URLs of the sources.
	shop, bank string
	// link is between the nodes and the coordination database.
	link *netfault.Proxy
}

// startCluster starts nodes that poll orders and returns of the shop, and payments of the bank.
// The shop has orders and no returns.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{
		bed:  testbed.Testbed{Options: testbed.Options{Binary: binary(t), Folder: t.TempDir()}},
		shop: pgtest.New(t), bank: pgtest.New(t),
	}
	for _, source := range []string{c.shop, c.bank} {
		for _, table := range []string{"orders", "returns", "payments"} {
			c.execute(t, source, fmt.Sprintf(`CREATE TABLE %[1]s (id BIGINT PRIMARY KEY, note TEXT NOT NULL, updated_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp());
				CREATE INDEX ON %[1]s (updated_at, id)`, table))
		}
	}
	c.order(t, 1, 7)
	var database string
	database, c.link = netfault.StartBefore(t, pgtest.New(t))
	c.north = c.start(t, "north", database)
	c.south = c.start(t, "south", database)
	must(t, testbed.Sees(t.Context(), []*daemon.Process{c.north, c.south}))
	return c
}

func (c *cluster) start(t *testing.T, name, database string) *daemon.Process {
	t.Helper()
	p, err := c.bed.Start(context.WithoutCancel(t.Context()), "", daemon.Config{
		Node: name, Database: database, Sources: map[string]string{"shop": c.shop, "bank": c.bank},
		Observers: []string{
			"{id: orders, type: order, source: shop, table: orders, key: id, timestamp: updated_at}",
			"{id: returns, type: return, source: shop, table: returns, key: id, timestamp: updated_at, max-row-bytes: 1024}",
			"{id: payments, type: payment, source: bank, table: payments, key: id, timestamp: updated_at}",
		},
		Files: map[string]string{"ledger": filepath.Join(c.bed.Folder, "events.jsonl")},
	})
	must(t, err)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, p.Log.Tail(2_000))
		}
	})
	return p
}

func (c *cluster) execute(t *testing.T, source string, statements ...string) {
	t.Helper()
	must(t, pgtest.Execute(t.Context(), source, statements...))
}

// order puts n orders into the shop, whose ids begin with first.
func (c *cluster) order(t *testing.T, first, n int) {
	t.Helper()
	c.execute(t, c.shop, fmt.Sprintf(`INSERT INTO orders SELECT n, 'new' FROM generate_series(%d, %d) n`, first, first+n-1))
}

// poison gives the shop returns of which none can become an event: they are too large.
func (c *cluster) poison(t *testing.T) {
	t.Helper()
	c.execute(t, c.shop, `INSERT INTO returns SELECT n, repeat('x', 2000) FROM generate_series(1, 3) n`)
}

// fail takes the payments away from the bank.
func (c *cluster) fail(t *testing.T) {
	t.Helper()
	c.execute(t, c.bank, `ALTER TABLE payments RENAME TO payments_old`)
}

// recover gives them back, and ends the wait as an operator does.
func (c *cluster) recover(t *testing.T) {
	t.Helper()
	c.execute(t, c.bank, `ALTER TABLE payments_old RENAME TO payments`)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, daemon.Run(ctx, daemon.Options{
		Binary: c.bed.Binary, Name: "resume", Folder: filepath.Join(c.bed.Folder, "north"),
		Args: []string{"observers", "resume", "payments"}, LogFile: filepath.Join(t.TempDir(), "log"),
	}))
}
