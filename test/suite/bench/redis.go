package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	ours "github.com/observerd/observerd/internal/lock/redislock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/redistest"
)

const (
	goalRedis  = 1.5
	redisGroup = "Locks in Redis: acquire and release"
	// redisTimes is how many more cycles there are than of locks in a database: one takes a
	// tenth of the time.
	redisTimes = 5
)

// redisWays are the ways to lock, in the order in which a lap takes them.
var redisWays = []string{"bare commands", "observerd", "bsm/redislock", "redsync", "the coordination database"}

// compareDelete releases a bare lock.
var compareDelete = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

// redisLockers have a client, and a pool of connections, for each connection of the comparison.
type redisLockers struct {
	clients   []*redis.Client
	providers []*ours.Provider
	nodes     []*lockdb.DB
}

// measureRedisLocks measures the provider beside the bare commands of its client, two libraries,
// and the pollers' lock on PostgreSQL.
func measureRedisLocks(ctx context.Context, s *suite) (figures []figure, err error) {
	server, err := redistest.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	where, err := s.cluster.coordination(ctx, "redis")
	if err != nil {
		return nil, err
	}
	l := &redisLockers{}
	defer func() { err = errors.Join(err, l.close()) }()
	for range crowd {
		l.clients = append(l.clients, redis.NewClient(&redis.Options{Addr: server.Address(), MaxRetries: -1, ContextTimeoutEnabled: true}))
		p, err := ours.Open(ours.Options{URL: server.URL()})
		if err != nil {
			return nil, err
		}
		l.providers = append(l.providers, p)
		node, err := openStore(ctx, where)
		if err != nil {
			return nil, err
		}
		l.nodes = append(l.nodes, node)
	}
	for _, n := range []int{1, crowd} {
		f, err := l.compare(ctx, s, n)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f...)
	}
	contended, err := l.contend(ctx, s)
	if err != nil {
		return nil, err
	}
	waiters, err := compareWaiters(ctx, s, server.URL())
	return append(figures, contended, waiters), err
}

func (l *redisLockers) close() error {
	var errs []error
	for _, c := range l.clients {
		errs = append(errs, c.Close())
	}
	for _, p := range l.providers {
		errs = append(errs, p.Close())
	}
	for _, n := range l.nodes {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}

// way are n connections that lock a key each.
func (l *redisLockers) way(name string, n int) side {
	s := make(side, n)
	for i := range s {
		c, wanted := l.clients[i], key(i)
		switch name {
		case "bare commands":
			s[i] = func(ctx context.Context) (bool, error) {
				id := uuid.NewString()
				taken, err := c.SetNX(ctx, "bare:"+wanted, id, time.Minute).Result()
				if err != nil || !taken {
					return false, err
				}
				return true, compareDelete.Run(ctx, c, []string{"bare:" + wanted}, id).Err()
			}
		case "observerd":
			s[i] = leaseCycle(l.providers[i], wanted)
		case "bsm/redislock":
			locker := redislock.New(c)
			s[i] = func(ctx context.Context) (bool, error) {
				held, err := locker.Obtain(ctx, "bsm:"+wanted, time.Minute, nil)
				if err != nil {
					return false, err
				}
				return true, held.Release(ctx)
			}
		case "redsync":
			sync := redsync.New(goredis.NewPool(c))
			s[i] = func(ctx context.Context) (bool, error) {
				m := sync.NewMutex("redsync:"+wanted, redsync.WithExpiry(time.Minute), redsync.WithTries(1))
				if err := m.LockContext(ctx); err != nil {
					return false, err
				}
				_, err := m.UnlockContext(ctx)
				return true, err
			}
		default:
			s[i] = leaseCycle(l.nodes[i].Leases(), wanted)
		}
	}
	return s
}

// compare lets n connections lock n keys, in each of the ways in turn.
func (l *redisLockers) compare(ctx context.Context, s *suite, n int) ([]figure, error) {
	taken := make(map[string][]time.Duration)
	for lap := range s.rounds*lapsPerRound + 1 {
		for _, name := range redisWays {
			times := s.lockCycles / lapsPerRound
			if name != redisWays[len(redisWays)-1] {
				times *= redisTimes
			}
			took, err := together(ctx, l.way(name, n), times)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if lap > 0 { // The first one connects.
				taken[name] = append(taken[name], median(took.taken))
			}
		}
	}
	connections := "1 connection"
	if n > 1 {
		connections = fmt.Sprintf("%d connections with a key each", n)
	}
	nanoseconds := func(d time.Duration) float64 { return float64(d) }
	bare := taken[redisWays[0]]
	var figures []figure
	for _, name := range redisWays[1:] {
		ratio := ratioOf(taken[name], bare, nanoseconds)
		f := figure{
			group: redisGroup, what: fmt.Sprintf("p50, %s, %s", name, connections),
			value:  say("%s ms, %s times the bare commands", milliseconds(median(taken[name])), decimal(ratio, 2)),
			beside: say("bare SET NX PX and a compare-delete script %s ms", milliseconds(median(bare))),
		}
		if name == "observerd" && n == 1 {
			toRedsync := ratioOf(taken[name], taken["redsync"], nanoseconds)
			f.goal, f.met = "at most 1.5 times, and below redsync", []bool{ratio <= goalRedis && toRedsync < 1}
		}
		s.progress("redis-locks: %s: %s, %s", f.what, f.value, f.beside)
		figures = append(figures, f)
	}
	return figures, nil
}
