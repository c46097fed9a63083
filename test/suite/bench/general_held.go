package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/testbed"
)

const (
	goalBeside = 0.01
	goalFind   = 50 * time.Millisecond
)

// usage is what the holder of locks needs in some time, and its database.
type usage struct {
	cpu, span time.Duration
	// commits are those of the holder's database: each statement of a lease is one.
	// written are rows that were changed.
	commits, written int64
}

func (u usage) perSecond(n int64) float64 { return float64(n) / u.span.Seconds() }

// measureHeld says what it costs to keep many leases alive. The holder is this process.
func measureHeld(ctx context.Context, s *suite) (_ []figure, err error) {
	where, err := s.cluster.coordination(ctx, "held")
	if err != nil {
		return nil, err
	}
	m, _, err := openManager(ctx, where)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close(ctx)) }()
	s.progress("general-locks: the holder for %s without locks, and for as long with %d", s.idle, s.held)
	without, err := s.use(ctx, where)
	if err != nil {
		return nil, err
	}
	if err := hold(ctx, m, s.held, locks.DefaultTTL); err != nil {
		return nil, err
	}
	with, err := s.use(ctx, where)
	if err != nil {
		return nil, err
	}
	percent := func(u usage) number { return decimal(100*u.cpu.Seconds()/u.span.Seconds(), 2) }
	group := fmt.Sprintf("General locks: %s held leases, TTL %s", thousands(s.held), locks.DefaultTTL)
	return []figure{{
		group: group, what: "statements of the holder",
		value:  say("%s per second, which change %s rows per second", decimal(with.perSecond(with.commits), 1), whole(with.perSecond(with.written))),
		beside: say("without locks %s per second, %s rows", decimal(without.perSecond(without.commits), 1), whole(without.perSecond(without.written))),
	}, {
		group: group, what: "CPU of the holder",
		value:  say("%s%% of a core", percent(with)),
		beside: say("without locks %s%%", percent(without)),
	}}, nil
}

// use lets the holder go on for the time in which an idle node is measured.
func (s *suite) use(ctx context.Context, where string) (usage, error) {
	commits, written, err := statistics(ctx, s.cluster.conn, where)
	if err != nil {
		return usage{}, err
	}
	var watch stopwatch
	watch.start()
	if err := testbed.Wait(ctx, s.idle); err != nil {
		return usage{}, err
	}
	watch.stop()
	u := usage{cpu: watch.used, span: watch.took}
	u.commits, u.written, err = statistics(ctx, s.cluster.conn, where)
	u.commits -= commits
	u.written -= written
	return u, err
}

// hold acquires that many locks, which the manager holds until it is closed or ctx ends.
func hold(ctx context.Context, m *locks.Manager, n int, ttl time.Duration) error {
	var tasks errgroup.Group // One with a context would end the leases when it is done.
	tasks.SetLimit(crowd)
	for i := range n {
		tasks.Go(func() error {
			_, err := m.Acquire(ctx, descriptor(locks.Exclusive, ttl, i), locks.FailFast())
			return err
		})
	}
	return tasks.Wait()
}

// These make many locks of one that is held: all of them belong to the same process.
// Acquired one by one they would take minutes, and as long to be released.
const (
	manyLocksSQL = `
		INSERT INTO int_lock
		SELECT c.*
		  FROM int_lock AS l, generate_series(1, %d) AS i,
		       jsonb_populate_record(l, jsonb_build_object('lock_key', 'many-' || i, 'client_id', gen_random_uuid())) AS c
		 WHERE l.region = '` + locks.DefaultRegion + `'`
	manyHoldersSQL = `
		INSERT INTO obs_lock
		SELECT c.*
		  FROM obs_lock AS o, int_lock AS l,
		       jsonb_populate_record(o, jsonb_build_object('lock_key', l.lock_key, 'term', l.client_id, 'name', l.lock_key,
		         'descriptor', 'lock:exclusive:fileset:processing:' || l.lock_key)) AS c
		 WHERE o.region = '` + locks.DefaultRegion + `' AND l.region = o.region AND l.lock_key LIKE 'many-%'`
)

// stillHeld reports an error when fewer locks are held: the figures are about all of them.
func stillHeld(ctx context.Context, where string, want int) (err error) {
	conn, err := pgx.Connect(ctx, where)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var held int
	err = conn.QueryRow(ctx, `
		SELECT count(*) FROM int_lock JOIN obs_lock USING (lock_key, region)
		 WHERE region = $1 AND term = client_id`, locks.DefaultRegion).Scan(&held)
	if err == nil && held != want {
		err = fmt.Errorf("%d of %d locks are held at the end", held, want)
	}
	return err
}

// pair is an idle node without locks beside it and one with them, at the same time.
type pair struct{ without, with float64 }

// measureManyLocks runs two idle nodes, each on a database of its own; in that of one of
// them a process that lives holds many locks.
func measureManyLocks(ctx context.Context, s *suite) (_ []figure, err error) {
	bed, remove, err := newBed(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	without, err := s.idleBeside(ctx, filepath.Join(bed.Folder, "without"))
	if err != nil {
		return nil, err
	}
	with, err := s.idleBeside(ctx, filepath.Join(bed.Folder, "with"))
	if err != nil {
		return nil, err
	}
	m, _, err := openManager(ctx, with.Database)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close(ctx)) }()
	if err := s.manyLocks(ctx, m, with.Database); err != nil {
		return nil, err
	}
	var pairs []pair
	for range s.pairs {
		p, err := s.idlePair(ctx, bed, without, with)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, p)
	}
	finds, err := findFigures(ctx, s, m)
	if err != nil {
		return nil, err
	}
	return append(manyFigures(s, pairs), finds...), stillHeld(ctx, with.Database, s.many)
}

// manyLocks has a manager hold a lock, and the database many that look the same.
func (s *suite) manyLocks(ctx context.Context, m *locks.Manager, where string) error {
	if err := hold(ctx, m, 1, time.Hour); err != nil {
		return err
	}
	err := testbed.Execute(ctx, where, fmt.Sprintf(manyLocksSQL, s.many-1), manyHoldersSQL, `VACUUM ANALYZE int_lock, obs_lock`)
	if err != nil {
		return fmt.Errorf("copy the lock: %w", err)
	}
	return nil
}

// findsMeasured is how often each search is repeated.
const findsMeasured = 20

// findFigures measures how long it takes to find locks among the many.
func findFigures(ctx context.Context, s *suite, m *locks.Manager) ([]figure, error) {
	var figures []figure
	for _, find := range []struct {
		what   string
		filter locks.Filter
		want   int
	}{
		{"one lock, by a resource", locks.Filter{Resources: []string{fmt.Sprintf("many-%d", s.many/2)}, Limit: 10}, 1},
		{"the first 100, by subject", locks.Filter{Subject: "fileset", Limit: 100}, 100},
		{"none, by node", locks.Filter{Node: "no such node", Limit: 10}, 0},
	} {
		var took []time.Duration
		for range findsMeasured {
			began := time.Now()
			found, err := m.Find(ctx, find.filter)
			if err != nil {
				return nil, err
			}
			if len(found) != find.want {
				return nil, fmt.Errorf("find %s: found %d, want %d", find.what, len(found), find.want)
			}
			took = append(took, time.Since(began))
		}
		figures = append(figures, figure{
			group: fmt.Sprintf("Find among %s locks", thousands(s.many)), what: find.what,
			value: say("%s ms", milliseconds(median(took))), beside: say("median of %s", whole(findsMeasured)),
			goal: "under 50 ms", met: []bool{median(took) < goalFind},
		})
	}
	return figures, nil
}

func manyFigures(s *suite, pairs []pair) []figure {
	added := medianOf(pairs, func(p pair) float64 { return p.with - p.without })
	return []figure{{
		group: "CPU of an idle node beside held locks",
		what:  fmt.Sprintf("what %s held locks add", thousands(s.many)),
		value: say("%s%% of a core", decimal(100*added, 2)),
		beside: say("%s%% with them, %s%% without; medians of %s pairs of %s s",
			decimal(100*medianOf(pairs, func(p pair) float64 { return p.with }), 2),
			decimal(100*medianOf(pairs, func(p pair) float64 { return p.without }), 2),
			whole(len(pairs)), whole(s.idle.Seconds())),
		goal: "under 1% of a core", met: []bool{added < goalBeside},
	}}
}

// idleBeside is the configuration of an idle node, whose database has its tables.
func (s *suite) idleBeside(ctx context.Context, folder string) (daemon.Config, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return daemon.Config{}, err
	}
	c, err := s.idleConfig(ctx, folder)
	if err != nil {
		return c, err
	}
	db, err := openStore(ctx, c.Database)
	if err != nil {
		return c, err
	}
	return c, db.Close()
}

// idlePair measures both nodes in the same span.
func (s *suite) idlePair(ctx context.Context, bed *testbed.Testbed, without, with daemon.Config) (pair, error) {
	var p pair
	group, ctx := errgroup.WithContext(ctx)
	one := func(name string, c daemon.Config, part *float64) func() error {
		return func() error {
			node, err := bed.Start(ctx, name, c)
			if err != nil {
				return err
			}
			used, span, err := s.measureDaemon(ctx, node)
			*part = used.Seconds() / span.Seconds()
			return errors.Join(err, testbed.Stop(context.WithoutCancel(ctx), node))
		}
	}
	group.Go(one("without", without, &p.without))
	group.Go(one("with", with, &p.with))
	err := group.Wait()
	return p, err
}

// statistics reads how many transactions a database has committed, and how many rows they
// have changed. Sessions that go on tell it at most a second later.
func statistics(ctx context.Context, conn *pgx.Conn, where string) (commits, rows int64, err error) {
	c, err := pgx.ParseConfig(where)
	if err != nil {
		return 0, 0, err
	}
	err = conn.QueryRow(ctx, `
		SELECT xact_commit, tup_inserted + tup_updated + tup_deleted
		  FROM pg_stat_database WHERE datname = $1`, c.Database).Scan(&commits, &rows)
	if err != nil {
		return 0, 0, fmt.Errorf("read what was written: %w", err)
	}
	return commits, rows, nil
}
