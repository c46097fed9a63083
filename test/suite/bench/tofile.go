package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/testbed"
)

// goalFile is how much CPU of the node and of PostgreSQL a million rows may take, in seconds.
const goalFile = 28.0

// deliveredSQL is how many events a sink has acknowledged.
const deliveredSQL = `SELECT COALESCE(sum(last_seq), 0)::bigint FROM obs_sink_offset WHERE sink = 'file' AND stream <> ''`

// fileTaken is what a table into a file took.
type fileTaken struct {
	whole time.Duration
	// node and server are the CPU of the process and of its sessions.
	node, server time.Duration
}

// measureFile has a node poll a table that was never polled, and deliver it to a file, beside
// Debezium where it can be had.
func measureFile(ctx context.Context, s *suite) ([]figure, error) {
	rival, why, err := measureDebezium(ctx, s)
	if err != nil {
		return nil, err
	}
	ours, err := measureNode(ctx, s)
	if err != nil {
		return nil, err
	}
	group := fmt.Sprintf("%s rows from PostgreSQL through the event log into a file", thousands(s.rows))
	rate := figure{group: group, what: "from the start of a node to the last acknowledgement", value: say("%s rows/s", whole(float64(s.rows)/ours.whole.Seconds()))}
	if rival != nil {
		ratio := float64(s.rows) / ours.whole.Seconds() / rival.rate(s.rows)
		rate.beside, rate.goal, rate.met = say("%s times Debezium's rate", decimal(ratio, 2)), "at least Debezium's rate", []bool{ratio >= 1}
	}
	each := (ours.node + ours.server).Seconds() / float64(s.rows) * 1e6
	return append([]figure{rate, {
		group: group, what: "CPU of the node and of its sessions of PostgreSQL", value: say("%s µs/row", decimal(each, 1)),
		beside: say("%s µs of them the node's", decimal(ours.node.Seconds()/float64(s.rows)*1e6, 1)),
		goal:   "at most 28 µs/row", met: []bool{each <= goalFile},
	}}, rival.figures(group, s.rows, why)...), nil
}

// measureNode starts a node and waits until the file has all rows.
func measureNode(ctx context.Context, s *suite) (t fileTaken, err error) {
	bed, remove, err := newBed(ctx)
	if err != nil {
		return t, err
	}
	defer remove()
	s.progress("file: filling a source with %d rows", s.rows)
	source, err := s.makeOrders(ctx, s.rows)
	if err != nil {
		return t, err
	}
	coordination, err := s.cluster.coordination(ctx, "file")
	if err != nil {
		return t, err
	}
	if err := s.cluster.checkpoint(ctx); err != nil {
		return t, err
	}
	began := time.Now()
	p, err := bed.Start(ctx, "file", daemon.Config{
		Node: "observerd", Database: coordination, Sources: map[string]string{"shop": source},
		Observers: []string{"{id: orders, type: order, source: shop, table: orders, key: id, timestamp: updated_at, start: beginning}"},
		Files:     map[string]string{"file": filepath.Join(bed.Folder, "events.jsonl")},
		Interval:  time.Second, TTL: time.Minute, LogLevel: "info",
	})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, testbed.Stop(ctx, p)) }()
	if err := s.delivered(ctx, p, coordination); err != nil {
		return t, err
	}
	t.whole = time.Since(began)
	if t.node, err = cpuOf(p.PID()); err != nil {
		return t, err
	}
	t.server, err = s.cluster.cpu(ctx, source, coordination)
	return t, err
}

// delivered waits until the file has all rows.
func (s *suite) delivered(ctx context.Context, p *daemon.Process, coordination string) error {
	conn, err := pgx.Connect(ctx, coordination)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for n := 0; n < s.rows; {
		if err := live(ctx, p, 100*time.Millisecond); err != nil {
			return err
		}
		if err := conn.QueryRow(ctx, deliveredSQL).Scan(&n); err != nil {
			return fmt.Errorf("look what the file has: %w", err)
		}
	}
	return nil
}
