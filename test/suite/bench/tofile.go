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

// measureFile has a node poll a table that was never polled, and deliver it to a file.
func measureFile(ctx context.Context, s *suite) (_ []figure, err error) {
	bed, remove, err := newBed(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	s.progress("file: filling a source with %d rows", s.rows)
	source, err := s.makeOrders(ctx, s.rows)
	if err != nil {
		return nil, err
	}
	coordination, err := s.cluster.coordination(ctx, "file")
	if err != nil {
		return nil, err
	}
	if err := s.cluster.checkpoint(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	p, err := bed.Start(ctx, "file", daemon.Config{
		Node: "observerd", Database: coordination, Sources: map[string]string{"shop": source},
		Observers: []string{"{id: orders, type: order, source: shop, table: orders, key: id, timestamp: updated_at, start: beginning}"},
		Files:     map[string]string{"file": filepath.Join(bed.Folder, "events.jsonl")},
		Interval:  time.Second, TTL: time.Minute, LogLevel: "info",
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, testbed.Stop(ctx, p)) }()
	if err := s.delivered(ctx, p, coordination); err != nil {
		return nil, err
	}
	took := time.Since(began).Seconds()
	node, err := cpuOf(p.PID())
	if err != nil {
		return nil, err
	}
	server, err := s.cluster.cpu(ctx, source, coordination)
	if err != nil {
		return nil, err
	}
	each := (node + server).Seconds() / float64(s.rows) * 1e6
	group := fmt.Sprintf("%s rows from PostgreSQL through the event log into a file", thousands(s.rows))
	return []figure{
		{group: group, what: "from the start of a node to the last acknowledgement", value: say("%s rows/s", whole(float64(s.rows)/took))},
		{
			group: group, what: "CPU of the node and of its sessions of PostgreSQL", value: say("%s µs/row", decimal(each, 1)),
			beside: say("%s µs of them the node's", decimal(node.Seconds()/float64(s.rows)*1e6, 1)),
			goal:   "at most 28 µs/row", met: []bool{each <= goalFile},
		},
	}, nil
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
