package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
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
var redisWays = []string{"bare commands", "observerd", "bsm/redislock", "redsync", "the coordination database", onSQLite, advisory}

const onSQLite, advisory = "the coordination database on SQLite", "pg_try_advisory_lock"

// compareDelete releases a bare lock.
var compareDelete = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

// redisLockers have a client, and a pool of connections, for each connection of the comparison.
type redisLockers struct {
	clients   []*redis.Client
	providers []*ours.Provider
	nodes     []*lockdb.DB
	files     []*lockdb.DB
	// sessions are on the server of the nodes.
	sessions []*sql.DB
}

// measureRedisLocks measures the provider beside the bare commands of its client, two libraries,
// the pollers' lock on PostgreSQL and on SQLite, and the advisory lock of a session.
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
	folder, err := os.MkdirTemp("", "observerd-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
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
		file, err := openStore(ctx, "sqlite:"+filepath.Join(folder, "locks.db"))
		if err != nil {
			return nil, err
		}
		l.files = append(l.files, file)
		session, err := sql.Open("pgx", where)
		if err != nil {
			return nil, err
		}
		session.SetMaxOpenConns(1) // Only the session that locks can unlock.
		l.sessions = append(l.sessions, session)
	}
	for _, n := range []int{1, crowd} {
		f, err := l.comparison().compare(ctx, s, n)
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
	for _, n := range slices.Concat(l.nodes, l.files) {
		errs = append(errs, n.Close())
	}
	for _, c := range l.sessions {
		errs = append(errs, c.Close())
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
		case advisory:
			s[i] = advisoryCycle(l.sessions[i], wanted)
		case onSQLite:
			s[i] = leaseCycle(l.files[i].Leases(), wanted)
		default:
			s[i] = leaseCycle(l.nodes[i].Leases(), wanted)
		}
	}
	return s
}

// advisoryCycle locks a number, without a holder, a TTL or a fencing token.
func advisoryCycle(session *sql.DB, key string) cycle {
	return func(ctx context.Context) (taken bool, err error) {
		err = session.QueryRowContext(ctx, `SELECT pg_try_advisory_lock(hashtextextended($1, 0))`, key).Scan(&taken)
		if err == nil && taken {
			_, err = session.ExecContext(ctx, `SELECT pg_advisory_unlock(hashtextextended($1, 0))`, key)
		}
		return taken, err
	}
}

func (l *redisLockers) comparison() comparison {
	return comparison{
		name: "redis-locks", group: redisGroup, ways: redisWays, way: l.way, bare: "bare SET NX PX and a compare-delete script",
		times: func(s *suite, way string) int {
			if slices.Index(redisWays, way) >= slices.Index(redisWays, "the coordination database") {
				return s.lockCycles / lapsPerRound
			}
			return redisTimes * s.lockCycles / lapsPerRound
		},
		goal: func(taken map[string][]time.Duration) (string, bool) {
			nanoseconds := func(d time.Duration) float64 { return float64(d) }
			ratio, toRedsync := ratioOf(taken["observerd"], taken[redisWays[0]], nanoseconds), ratioOf(taken["observerd"], taken["redsync"], nanoseconds)
			return "at most 1.5 times, and below redsync", ratio <= goalRedis && toRedsync < 1
		},
	}
}
