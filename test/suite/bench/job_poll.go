package main

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

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
