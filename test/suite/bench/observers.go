package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/testbed"
)

const (
	manyInterval = 10 * time.Second
	// goalManySource is the part of a core of the source, goalManyAge the time since the oldest
	// poll: an interval, and what a turn of so many takes longer or shorter than the one before.
	goalManySource, goalManyAge = 0.25, manyInterval + 2*time.Second
)

// manyTablesSQL makes tables in steps, as a transaction can lock only so many.
const manyTablesSQL = `DO $$ BEGIN FOR i IN 1..%d LOOP
  EXECUTE format('CREATE TABLE orders_%%s (id bigint PRIMARY KEY, status text, note text, updated_at timestamptz NOT NULL DEFAULT now())', i);
  EXECUTE format('CREATE INDEX ON orders_%%s (updated_at)', i);
  EXECUTE format('INSERT INTO orders_%%s (id, status, note) SELECT n, ''NEW'', ''quiet'' FROM generate_series(1, 100) n', i);
  IF i %% 100 = 0 THEN COMMIT; END IF; END LOOP; END $$`

// oldestPollSQL is how many observers were polled, and how long ago that was at most, in seconds.
const oldestPollSQL = `SELECT count(last_ok_at), extract(epoch FROM max(clock_timestamp() - last_ok_at))::float8 FROM obs_cursor`

// measureManyObservers has two nodes poll many tables, in which nothing happens, in one type.
func measureManyObservers(ctx context.Context, s *suite) (_ []figure, err error) {
	bed, remove, err := newBed(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	c, err := s.manyConfig(ctx, bed.Folder, func(int) string { return "order" })
	if err != nil {
		return nil, err
	}
	c.Interval = manyInterval
	nodes, stop, err := startNodes(ctx, bed, c, 2)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return nil, err
	}
	parts, server, err := s.measureNodes(ctx, nodes, s.idle/4, c.Sources["warehouse"])
	if err != nil {
		return nil, err
	}
	oldest := 0.0
	for range manyInterval / time.Second { // It grows until the next turn.
		age, err := s.oldestPoll(ctx, c.Database)
		if err := errors.Join(err, live(ctx, nodes[0], time.Second)); err != nil {
			return nil, err
		}
		oldest = max(oldest, age)
	}
	group := fmt.Sprintf("%d observers of one type on %d nodes, interval 10 s, quiet tables of PostgreSQL", s.observers, len(nodes))
	return []figure{
		{
			group: group, what: "the sessions of the source", value: say("%s%% of a core", decimal(100*server, 1)),
			goal: "at most 25% of a core", met: []bool{server <= goalManySource},
		},
		{
			group: group, what: "since the poll of the observer that has waited longest", value: say("%s s", decimal(oldest, 1)),
			goal: "at most 12 s", met: []bool{oldest <= goalManyAge.Seconds()},
		},
		{group: group, what: "both nodes together", value: say("%s%% of a core", decimal(100*(parts[0]+parts[1]), 1))},
	}, nil
}

// manyConfig is that of as many observers, each of a table of its own. typeOf names their types.
func (s *suite) manyConfig(ctx context.Context, folder string, typeOf func(n int) string) (daemon.Config, error) {
	c, err := s.idleConfig(ctx, folder)
	if err != nil {
		return c, err
	}
	if err := testbed.Execute(ctx, c.Sources["warehouse"], fmt.Sprintf(manyTablesSQL, s.observers), "VACUUM ANALYZE"); err != nil {
		return c, fmt.Errorf("make %d tables: %w", s.observers, err)
	}
	c.Observers = nil
	for n := range s.observers {
		c.Observers = append(c.Observers, fmt.Sprintf("{id: o%[1]d, type: %[2]s, source: warehouse, table: orders_%[1]d, key: id, timestamp: updated_at}", n+1, typeOf(n)))
	}
	return c, nil
}

// measureManyTypes has a node poll as many types, of an observer each.
func measureManyTypes(ctx context.Context, s *suite) (_ []figure, err error) {
	bed, remove, err := newBed(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	c, err := s.manyConfig(ctx, bed.Folder, func(n int) string { return fmt.Sprint("type", n) })
	if err != nil {
		return nil, err
	}
	p, err := bed.Start(ctx, "types", c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, testbed.Stop(ctx, p)) }()
	resident, err := s.settledMemory(ctx, p)
	if err != nil {
		return nil, err
	}
	status, page, err := p.Get(ctx, "/metrics")
	switch {
	case err != nil:
		return nil, err
	case status != http.StatusOK:
		return nil, fmt.Errorf("read the metrics: status %d", status)
	}
	peak, err := memoryOf(p.PID(), "VmHWM")
	if err != nil {
		return nil, err
	}
	group := fmt.Sprintf("Memory of a node with %s types, an observer each, interval 30 s, quiet tables of PostgreSQL", thousands(s.observers))
	return []figure{
		{
			group: group, what: "resident, when all were polled", value: say("%s MiB", mebibytes(resident)),
			goal: "under 100 MiB", met: []bool{resident < goalMemory},
		},
		{group: group, what: "peak, from its start to a scrape of its metrics", value: say("%s MiB", mebibytes(peak)), beside: say("the scrape is %s MiB", mebibytes(int64(len(page))))},
	}, nil
}

func (s *suite) oldestPoll(ctx context.Context, database string) (seconds float64, err error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(ctx) }()
	var polled int
	if err := conn.QueryRow(ctx, oldestPollSQL).Scan(&polled, &seconds); err != nil {
		return 0, fmt.Errorf("look for the oldest poll: %w", err)
	}
	if polled < s.observers && !s.quick {
		return 0, fmt.Errorf("%d of %d observers were polled", polled, s.observers)
	}
	return seconds, nil
}
