package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/observerd/observerd/guard"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/database"
	"github.com/observerd/observerd/locks/redis"
	"github.com/observerd/observerd/test/kit/redistest"
	"github.com/observerd/observerd/test/kit/testbed"
)

// goalGuard is the least part of the plain inbox's rate.
const goalGuard = 0.6

// guardWays are the ways to process an order, in the order in which a lap takes them.
var guardWays = []string{"bare handler", "plain inbox", "guard with Redis", "guard with the coordination database"}

// consumers process orders in one database.
type consumers struct {
	pool   *pgxpool.Pool
	guards map[string]*guard.Guard
	events atomic.Int64
}

// measureGuard measures orders a second, with as many orders in the inbox as there are rows in a
// backlog.
func measureGuard(ctx context.Context, s *suite) (figures []figure, err error) {
	server, err := redistest.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	where, err := s.cluster.database(ctx, "guard")
	if err != nil {
		return nil, err
	}
	if err := testbed.Execute(ctx, where, guard.SQL(), "CREATE TABLE payment (order_id text, consumer text)",
		fmt.Sprintf("INSERT INTO obs_inbox SELECT 'payments', gen_random_uuid(), n, n, now() FROM generate_series(1, %d) AS n", s.rows), "ANALYZE"); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(where)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 2 * crowd
	c := &consumers{guards: make(map[string]*guard.Guard)}
	if c.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	defer c.pool.Close()
	coordination, err := s.cluster.coordination(ctx, "guard_locks")
	if err != nil {
		return nil, err
	}
	for way, open := range map[string]func() (locks.Provider, error){
		guardWays[2]: func() (locks.Provider, error) { return redis.Open(ctx, server.URL(), redis.Options{}) },
		guardWays[3]: func() (locks.Provider, error) { return database.Open(ctx, coordination, database.Options{}) },
	} {
		p, err := open()
		if err != nil {
			return nil, err
		}
		m, err := locks.Open(ctx, locks.Options{Provider: p, Region: "payment-lock", Node: "bench", Subjects: []string{"order"}})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, m.Close(ctx)) }()
		if c.guards[way], err = guard.New(ctx, guard.Options{Locks: m, Pgx: c.pool, Consumer: "payments", Wait: time.Minute}); err != nil {
			return nil, err
		}
	}
	for _, n := range []int{1, crowd, 8 * crowd} {
		f, err := c.compare(ctx, s, n)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f...)
	}
	return figures, nil
}

// pay is the handler.
func pay(ctx context.Context, tx pgx.Tx, order string) error {
	_, err := tx.Exec(ctx, "INSERT INTO payment VALUES ($1, 'a')", order)
	return err
}

// way is one consumer's way to process its next order.
func (c *consumers) way(name string) cycle {
	return func(ctx context.Context) (bool, error) {
		order, event := fmt.Sprint(c.events.Add(1)), uuid.NewString()
		switch name {
		case guardWays[0]:
			return true, pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error { return pay(ctx, tx, order) })
		case guardWays[1]:
			return true, pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
				tag, err := tx.Exec(ctx, "INSERT INTO obs_inbox VALUES ('payments', $1, $2, 0) ON CONFLICT DO NOTHING", event, order)
				if err != nil || tag.RowsAffected() == 0 {
					return err
				}
				return pay(ctx, tx, order)
			})
		}
		_, err := c.guards[name].Do(ctx, order, event, func(ctx context.Context, tx guard.Tx) error { return pay(ctx, tx.Pgx, order) })
		return true, err
	}
}

// pace is what one lap has found.
type pace struct {
	durations
	rate float64
}

func (c *consumers) compare(ctx context.Context, s *suite, n int) ([]figure, error) {
	found := make(map[string][]pace)
	for lap := range s.rounds + 1 {
		for _, name := range guardWays {
			all := make(side, n)
			for i := range all {
				all[i] = c.way(name)
			}
			began := time.Now()
			d, err := together(ctx, all, max(1, s.lockCycles/n*2))
			if err != nil {
				return nil, fmt.Errorf("%s, %d consumers: %w", name, n, err)
			}
			if lap > 0 { // The first one connects.
				found[name] = append(found[name], pace{d, float64(len(d.taken)) / time.Since(began).Seconds()})
			}
		}
	}
	rate := func(p pace) float64 { return p.rate }
	at := func(q float64) func(p pace) time.Duration {
		return func(p pace) time.Duration { return quantile(p.taken, q) }
	}
	inbox := found[guardWays[1]]
	var figures []figure
	for _, name := range guardWays {
		part := ratioOf(found[name], inbox, rate)
		f := figure{
			group: "Orders of a consumer", what: fmt.Sprintf("%s, %d consumers", name, n),
			value:  say("%s orders/s, p50 %s ms, p99 %s ms", whole(medianOf(found[name], rate)), milliseconds(medianOf(found[name], at(0.5))), milliseconds(medianOf(found[name], at(0.99)))),
			beside: say("%s of the plain inbox", decimal(part, 2)),
		}
		if name == guardWays[2] && n == crowd {
			f.goal, f.met = "at least 0.6 of the plain inbox", []bool{part >= goalGuard}
		}
		s.progress("guard: %s: %s, %s", f.what, f.value, f.beside)
		figures = append(figures, f)
	}
	return figures, nil
}
