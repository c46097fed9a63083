package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/testbed"
	"github.com/observerd/observerd/test/kit/workload"
)

// violationsSQL sees a daemon write while Java is in the section of the same lock.
// It hangs on tables of ours; streams are named like their types.
const violationsSQL = `
CREATE TABLE IF NOT EXISTS interop_violation (lock TEXT NOT NULL, what TEXT NOT NULL, at TIMESTAMPTZ NOT NULL);
CREATE OR REPLACE FUNCTION interop_watch() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO interop_violation
  SELECT lock, TG_TABLE_NAME, clock_timestamp() FROM interop_section WHERE lock = NEW.stream || '-observer-poll';
  RETURN NULL;
END $$;
CREATE TRIGGER interop_watch AFTER INSERT ON obs_event FOR EACH ROW EXECUTE FUNCTION interop_watch();
CREATE TRIGGER interop_watch AFTER INSERT ON obs_poll FOR EACH ROW EXECUTE FUNCTION interop_watch()`

// daemons runs whole nodes whose types' locks Java contends for.
func (t *trial) daemons(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, t.settings.time+10*time.Minute)
	defer cancel()
	if err := errors.Join(t.witness.clear(ctx), t.watch(ctx)); err != nil {
		return err
	}
	url, err := t.source(ctx)
	if err != nil {
		return err
	}
	running, err := t.startDaemons(ctx, url)
	defer func() {
		for _, p := range running {
			p.Kill()
		}
	}()
	if err != nil {
		return err
	}
	p, err := t.contend(ctx, contention{
		names: []string{"order-observer-poll", "inventory-observer-poll", "wes-observer-poll"}, keys: keysOf(lockdb.KeySpring),
		time: t.settings.time, hold: 200 * time.Millisecond, pause: time.Second, longEvery: 60, abandonEvery: 60, threads: 1,
	})
	if err != nil {
		return err
	}
	var java summary
	written, err := write(ctx, url, t.settings)
	if err := errors.Join(p.end(&java), err); err != nil {
		return err
	}
	if err := t.drained(ctx, written); err != nil {
		return err
	}
	if err := testbed.Stop(ctx, running...); err != nil {
		return err
	}
	return errors.Join(java.verdict(), t.judgeDaemons(ctx, java, written))
}

// watch makes the witness of the daemons, and checks that it can see.
func (t *trial) watch(ctx context.Context) error {
	tx, err := t.witness.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // It was committed, or failed.
	var n int
	_, err = tx.ExecContext(ctx, violationsSQL+`;
		SAVEPOINT empty;
		INSERT INTO interop_section VALUES ('order-observer-poll', 'java');
		INSERT INTO obs_poll (type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count)
		VALUES ('order', 'order', '', now(), now(), now(), 'ok', '', 0, 0, 0)`)
	if err == nil {
		err = tx.QueryRowContext(ctx, `SELECT count(*) FROM interop_violation`).Scan(&n)
	}
	if err == nil && n != 1 {
		err = errors.New("the witness of the daemons sees nothing")
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, `ROLLBACK TO empty`)
	}
	if err != nil {
		return fmt.Errorf("make the witness of the daemons: %w", err)
	}
	return tx.Commit()
}

// observers are named like their types.
var observers = []string{
	`{id: order, type: order, source: source, table: orders, key: order_id, timestamp: updated_at}`,
	`{id: inventory, type: inventory, source: source, table: stock, key: sku}`,
	`{id: wes, type: wes, source: source, table: tasks, key: task_id, timestamp: updated_at}`,
}

// source makes the database that the daemons poll.
func (t *trial) source(ctx context.Context) (url string, err error) {
	name := t.generation.String() + "_source"
	if _, err := t.witness.db.ExecContext(ctx, `CREATE DATABASE `+name); err != nil {
		return "", fmt.Errorf("make the source: %w", err)
	}
	url = t.server.URL(name)
	return url, workload.Create(ctx, url, 0)
}

// write lets the source be written for the time of the trial, and returns how many
// orders it has then.
func write(ctx context.Context, url string, s settings) (orders int, err error) {
	writers, err := workload.Open(ctx, url, uint64(s.seed), 0, 500*time.Millisecond) //nolint:gosec // Any number is a seed.
	if err != nil {
		return 0, err
	}
	err = testbed.Wait(ctx, s.time)
	writers.Close()
	journal, failed := workload.Writes(context.WithoutCancel(ctx), url)
	for _, w := range journal {
		if w.Stream == workload.Orders && w.N == 1 {
			orders++
		}
	}
	return orders, errors.Join(err, failed)
}

func (t *trial) startDaemons(ctx context.Context, source string) (running []*daemon.Process, err error) {
	bed := &testbed.Testbed{Options: testbed.Options{Binary: t.binary, Folder: t.settings.cache}}
	for n := range nodes {
		c := daemon.Config{
			Node: fmt.Sprintf("node-%d", n), Database: t.url, Sources: map[string]string{"source": source}, Observers: observers,
			Files:    map[string]string{"file": filepath.Join(t.settings.cache, t.generation.String(), fmt.Sprintf("events-%d.jsonl", n))},
			Interval: time.Second, TTL: ttl, KeyFormat: string(lockdb.KeySpring),
		}
		p, err := bed.Start(ctx, t.generation.String(), c)
		if err != nil {
			return running, err
		}
		running = append(running, p)
	}
	return running, nil
}

// drained waits until each order is an event.
func (t *trial) drained(ctx context.Context, orders int) error {
	return testbed.Until(ctx, 2*time.Minute, func() error {
		var n int
		err := t.witness.db.QueryRowContext(ctx, `SELECT count(DISTINCT subject) FROM obs_event WHERE stream = 'order'`).Scan(&n)
		if err == nil && n < orders {
			err = fmt.Errorf("%d of %d orders are events", n, orders)
		}
		return err
	})
}

func (t *trial) judgeDaemons(ctx context.Context, java summary, orders int) error {
	s, err := t.witness.testify(ctx)
	if err != nil {
		return err
	}
	var polls, busy, violations, events, rows int
	err = t.witness.db.QueryRowContext(ctx, `
		SELECT count(*) FILTER (WHERE outcome = 'ok'), count(DISTINCT node), (SELECT count(*) FROM interop_violation),
		       (SELECT count(*) FROM obs_event WHERE stream = 'order'), (SELECT count(*) FROM int_lock)
		  FROM obs_poll`).Scan(&polls, &busy, &violations, &events, &rows)
	if err != nil {
		return fmt.Errorf("ask the daemons' tables: %w", err)
	}
	fmt.Fprintf(t.out, "%s, %d daemons, %s: writes within a section of Java %d; sections of Java %d (overlaps %d), polls %d by %d nodes; %d orders, %d events\n",
		t.name(), nodes, t.settings.time, violations, s.java, s.overlaps+s.crossings+s.lost, polls, busy, orders, events)
	fmt.Fprintf(t.out, "  Java: %s\n", java)
	var wrong []string
	for what, is := range map[string]bool{
		"a daemon wrote under a lock that Java held": violations != 0,
		"sections of Java overlapped":                s.overlaps+s.crossings+s.lost+s.open != 0,
		"an order is no event, or two":               events != orders,
		"a side had no turns":                        s.java < 10 || polls < 10,
	} {
		if is {
			wrong = append(wrong, what)
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}
