package main

import (
	"context"
	"errors"
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

// pollOnce polls rows that are all new. Each of them is an event; read are some
// more, if the poll takes longer than one statement may: the next one begins with
// the last row of the one before.
func pollOnce(ctx context.Context, o *observer.Observer, src observer.Source, db *lockdb.DB, watch *stopwatch) (int64, error) {
	stats, err := pollLeased(ctx, o, src, db, watch)
	return stats.Events, err
}

// pollLeased polls under a lease of its own.
func pollLeased(ctx context.Context, o *observer.Observer, src observer.Source, db *lockdb.DB, watch *stopwatch) (observer.Stats, error) {
	watch.start()
	g, err := db.Leases().Acquire(ctx, request("order-observer-poll"))
	if err != nil {
		return observer.Stats{}, err
	}
	stats, err := o.Poll(ctx, src, db.Store(g))
	if err != nil {
		return stats, err
	}
	err = db.Leases().Release(ctx, g)
	watch.stop()
	return stats, err
}

// request asks for a lock with the default TTL.
func request(key string) lock.Request {
	return lock.Request{Key: key, Region: "DEFAULT", TTL: time.Minute, Name: key, Node: "bench"}
}
