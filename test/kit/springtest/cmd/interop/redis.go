package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/redislock"
	"github.com/observerd/observerd/test/kit/redistest"
)

// redisProfile is the profile of the project with Spring's RedisLockRegistry, and
// redisRegion the registry's key.
const (
	redisProfile = "redis"
	redisRegion  = "payment-lock"
)

// redis lets both sides contend for keys of Redis, with each type of the registry's locks. The
// witness is in PostgreSQL, as it is for rows.
func (t *trial) redis(ctx context.Context) (err error) {
	server, err := redistest.Open(ctx)
	if err != nil {
		return fmt.Errorf("start Redis: %w", err)
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	t.store = []string{"redis=" + server.Address(), "region=" + redisRegion}
	if err := t.database(ctx, redisProfile); err != nil {
		return err
	}
	if err := t.java.run(ctx, &t.version, "version"); err != nil {
		return err
	}
	if err := t.openWitness(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.witness.db.Close()) }()
	ours := side{
		names: locks,
		request: func(name string) lock.Request {
			return lock.Request{Key: name, Region: redisRegion, TTL: ttl, Name: name, Mode: lock.Exclusive}
		},
		open: func(context.Context) (lock.Provider, io.Closer, error) {
			p, err := redislock.Open(redislock.Options{URL: server.URL()})
			return p, p, err
		},
	}
	var errs []error
	for _, keys := range []string{"spin", "pubsub"} {
		ours.shares = false
		errs = append(errs, t.contest(ctx, keys, keys+" locks", ours, t.settings.time))
		ours.shares = true
		errs = append(errs, t.contest(ctx, keys, keys+" locks", ours, t.settings.time/3))
	}
	return errors.Join(errs...)
}
