package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/observerd/observerd/test/kit/netfault"
)

// The kinds of databases that polls are measured on.
const (
	kindPostgres = "postgres"
	kindMariaDB  = "mariadb"
	kindOracle   = "oracle"
)

// origin is a database that polls read from.
type origin interface {
	// kind is what a worker knows it by, name what people call it.
	kind() string
	name() string
	// url is what polls connect to.
	url() string
	// fill makes tables of orders with so many rows each, as tableOf names them.
	fill(ctx context.Context, sizes []int) error
	// counted returns a URL by which requests are counted.
	counted(ctx context.Context) (counted, error)
	close()
}

// counted is a way to a database on which requests are counted.
type counted struct {
	url string
	// trips is how many there were so far.
	trips func() int64
	close func()
}

// countRequests leads through a proxy. A request is what a client sends at
// once, which it follows with a wait for the answer.
func countRequests(ctx context.Context, where string) (counted, error) {
	proxied, proxy, err := netfault.OpenBefore(ctx, where)
	if err != nil {
		return counted{}, err
	}
	var requests atomic.Int64
	proxy.Inspect(func([]byte) netfault.Fault {
		requests.Add(1)
		return netfault.Fault{}
	})
	return counted{url: proxied, trips: requests.Load, close: proxy.Close}, nil
}

// tableOf is the table of so many orders.
func tableOf(rows int) string { return fmt.Sprintf("orders_%d", rows) }
