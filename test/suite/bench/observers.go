package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

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
	c, err := s.idleConfig(ctx, bed.Folder)
	if err != nil {
		return nil, err
	}
	source := c.Sources["warehouse"]
	if err := testbed.Execute(ctx, source, fmt.Sprintf(manyTablesSQL, s.observers), "VACUUM ANALYZE"); err != nil {
		return nil, fmt.Errorf("make %d tables: %w", s.observers, err)
	}
	c.Interval, c.Observers = manyInterval, nil
	for i := range s.observers {
		c.Observers = append(c.Observers, fmt.Sprintf("{id: o%[1]d, type: order, source: warehouse, table: orders_%[1]d, key: id, timestamp: updated_at}", i+1))
	}
	nodes, stop, err := startNodes(ctx, bed, c, 2)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return nil, err
	}
	parts, server, err := s.measureNodes(ctx, nodes, s.idle/4, source)
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
