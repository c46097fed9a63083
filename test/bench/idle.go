package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/testbed"
)

const goalIdle = 0.01

// measureIdle runs the real binary, as it would be installed, with three types
// on a source in which nothing happens.
func measureIdle(ctx context.Context, s *suite) ([]figure, error) {
	folder, err := os.MkdirTemp("", "observerd-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	binary := filepath.Join(folder, "observerd")
	if err := daemon.Build(ctx, daemon.BuildOptions{Out: binary}); err != nil {
		return nil, err
	}
	if err := s.idleConfig(ctx, folder); err != nil {
		return nil, err
	}
	p, err := daemon.Start(ctx, daemon.Options{Binary: binary, Name: "observerd", Folder: folder})
	if err != nil {
		return nil, err
	}
	used, span, err := s.measureDaemon(ctx, p)
	if err := stop(ctx, p, err); err != nil {
		return nil, err
	}
	part := used.Seconds() / span.Seconds()
	return []figure{{
		group:  "CPU of an idle node",
		what:   "three types, interval 30 s, quiet source",
		value:  say("%s%% of a core", decimal(100*part, 2)),
		beside: say("%s ms of CPU in %s s", whole(millis(used)), whole(span.Seconds())),
		goal:   "under 1% of a core", met: []bool{part < goalIdle},
	}}, nil
}

// quietSQL makes the tables of three types, with some rows in each.
const quietSQL = `
CREATE TABLE orders (order_id bigint PRIMARY KEY, status text NOT NULL, updated_at timestamptz NOT NULL);
CREATE TABLE inventory (warehouse text, sku text, quantity int NOT NULL, PRIMARY KEY (warehouse, sku));
CREATE TABLE wes_tasks (task_id bigint PRIMARY KEY, status text NOT NULL, updated_at timestamptz NOT NULL);
INSERT INTO orders SELECT i, 'RELEASED', '2026-01-01Z'::timestamptz + i * interval '1 second' FROM generate_series(1, 1000) AS i;
INSERT INTO inventory SELECT 'W' || i % 4, 'SKU-' || i, i FROM generate_series(1, 1000) AS i;
INSERT INTO wes_tasks SELECT i, 'DONE', '2026-01-01Z'::timestamptz + i * interval '1 second' FROM generate_series(1, 1000) AS i;
CREATE INDEX ON orders (updated_at, order_id);
CREATE INDEX ON wes_tasks (updated_at, task_id)`

const idleYAML = `
database: {url: "%s"}
scheduler: {observer: {fixed-delay: 30s}}
sources:
  warehouse: {url: "%s"}
observers:
  - {id: warehouse-orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at}
  - {id: warehouse-stock, type: inventory, source: warehouse, table: inventory, key: [warehouse, sku]}
  - {id: warehouse-tasks, type: wes, source: warehouse, table: wes_tasks, key: task_id, timestamp: updated_at}
sinks:
  - {id: file, type: file, path: "%s"}
http: {listen: "127.0.0.1:0"}
log: {format: json}
`

// idleConfig makes both databases and the file of the configuration.
func (s *suite) idleConfig(ctx context.Context, folder string) error {
	source, err := s.cluster.database(ctx, "quiet")
	if err != nil {
		return err
	}
	if err := testbed.Execute(ctx, source, quietSQL); err != nil {
		return fmt.Errorf("fill the quiet source: %w", err)
	}
	coordination, err := s.cluster.database(ctx, "idle")
	if err != nil {
		return err
	}
	text := fmt.Sprintf(idleYAML, coordination, source, filepath.Join(folder, "events.jsonl"))
	return os.WriteFile(filepath.Join(folder, "config.yaml"), []byte(text), 0o600)
}

// measureDaemon waits until the daemon is ready and warm, and then says how
// much CPU it has used in how much time.
func (s *suite) measureDaemon(ctx context.Context, p *daemon.Process) (used, span time.Duration, err error) {
	if err := ready(ctx, p); err != nil {
		return 0, 0, err
	}
	s.progress("idle: the node is ready; measuring for %s after %s", s.idle, s.warmup)
	if err := live(ctx, p, s.warmup); err != nil {
		return 0, 0, err
	}
	before, err := cpuOf(p)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := live(ctx, p, s.idle); err != nil {
		return 0, 0, err
	}
	after, err := cpuOf(p)
	return after - before, time.Since(began), err
}
