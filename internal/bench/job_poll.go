package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
)

// pollBacklog is our side: one poll, from the cursor to the last commit, under
// a lease.
func pollBacklog(ctx context.Context, j job, watch *stopwatch) (rows int64, err error) {
	db, err := openStore(ctx, j.Database)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	src, err := postgres.Open(postgres.Options{URL: j.Source})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	o, err := observer.New(orderSpec(stream, j.Chunk))
	if err != nil {
		return 0, err
	}
	return pollOnce(ctx, o, src, db, watch)
}

func pollOnce(ctx context.Context, o *observer.Observer, src observer.Source, db *lockdb.DB, watch *stopwatch) (int64, error) {
	watch.start()
	g, err := db.Leases().Acquire(ctx, request("order-observer-poll"))
	if err != nil {
		return 0, err
	}
	stats, err := o.Poll(ctx, src, db.Store(g))
	if err != nil {
		return 0, err
	}
	err = db.Leases().Release(ctx, g)
	watch.stop()
	if stats.Events != stats.Rows {
		return 0, fmt.Errorf("%d events of %d rows", stats.Events, stats.Rows)
	}
	return stats.Events, err
}

// request asks for a lock with the default TTL.
func request(key string) lock.Request {
	return lock.Request{Key: key, Region: "DEFAULT", TTL: time.Minute, Name: key, Node: "bench"}
}
