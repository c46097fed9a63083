package main

import (
	"context"
	"testing"

	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/testbed"
)

// newCluster makes databases for one test.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c, err := openCluster(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.close(context.Background()) })
	return c
}

// makeTable makes a source with a table of orders.
func makeTable(t *testing.T, c *cluster, statements ...string) string {
	t.Helper()
	where, err := c.database(t.Context(), "source")
	if err != nil {
		t.Fatal(err)
	}
	if err := testbed.Execute(t.Context(), where, append([]string{"CREATE TABLE orders" + ordersColumns}, statements...)...); err != nil {
		t.Fatal(err)
	}
	return where
}
