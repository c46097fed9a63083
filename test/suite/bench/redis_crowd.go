package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/redis"
)

// manyWaiters is how many callers of one process wait for a lock.
const manyWaiters = 100

// contend lets all connections want one key, without a pause between two attempts.
func (l *redisLockers) contend(ctx context.Context, s *suite) (figure, error) {
	all := make(side, crowd)
	for i := range all {
		all[i] = leaseCycle(l.providers[i], key(0))
	}
	var found durations
	for range s.rounds {
		d, err := together(ctx, all, s.lockCycles)
		if err != nil {
			return figure{}, fmt.Errorf("the contenders: %w", err)
		}
		found.add(d)
	}
	p95 := quantile(found.all(), 0.95)
	f := figure{
		group: redisGroup, what: fmt.Sprintf("p95 of an attempt, %d contenders for one key", crowd),
		value: say("%s ms (%s%% got the lock)", milliseconds(p95), whole(100*len(found.taken)/max(1, len(found.all())))),
		goal:  "under 20 ms", met: []bool{p95 < goalContended},
	}
	s.progress("redis-locks: %s: %s", f.what, f.value)
	return f, nil
}

// compareWaiters counts what those ask who wait for a lock that is held all the time.
func compareWaiters(ctx context.Context, s *suite, url string) (figure, error) {
	one, err := requestsOf(ctx, s, url, 1)
	if err != nil {
		return figure{}, err
	}
	many, err := requestsOf(ctx, s, url, manyWaiters)
	if err != nil {
		return figure{}, err
	}
	f := figure{
		group: redisGroup, what: fmt.Sprintf("requests of %d callers of one process that wait for %s", manyWaiters, s.contest),
		value: say("%s", whole(many)), beside: say("those of one caller: %s", whole(one)),
		// One who waits may ask once more or less, by when it began.
		goal: "those of one", met: []bool{many <= one+1},
	}
	s.progress("redis-locks: %s: %s, %s", f.what, f.value, f.beside)
	return f, nil
}

// requestsOf is how many requests n callers make who wait for a held lock.
func requestsOf(ctx context.Context, s *suite, url string, n int) (requests int, err error) {
	open := func(reg prometheus.Registerer) (*locks.Manager, error) {
		p, err := redis.Open(ctx, url, redis.Options{Registerer: reg})
		if err != nil {
			return nil, err
		}
		return locks.Open(ctx, locks.Options{Provider: p, Node: "bench"})
	}
	holder, err := open(nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, holder.Close(ctx)) }()
	wanted := descriptor(locks.Exclusive, time.Hour, 0)
	if _, err := holder.Acquire(ctx, wanted); err != nil {
		return 0, err
	}
	reg := prometheus.NewRegistry()
	m, err := open(reg)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.Close(ctx)) }()
	all := make(side, n)
	for i := range all {
		all[i] = func(ctx context.Context) (bool, error) {
			_, err := m.Acquire(ctx, wanted, locks.Within(s.contest))
			if errors.Is(err, locks.ErrHeld) {
				return false, nil
			}
			return true, err
		}
	}
	if _, err := together(ctx, all, 1); err != nil {
		return 0, err
	}
	families, err := reg.Gather()
	for _, f := range families {
		for _, m := range f.GetMetric() {
			requests += int(m.GetCounter().GetValue())
		}
	}
	return requests, err
}
