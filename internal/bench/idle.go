package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
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
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", binary,
		"github.com/observerd/observerd/cmd/observerd")
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the daemon: %w\n%s", err, output)
	}
	listen, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	config, err := s.idleConfig(ctx, folder, listen)
	if err != nil {
		return nil, err
	}
	d, err := startDaemon(ctx, binary, config, listen)
	if err != nil {
		return nil, err
	}
	used, span, err := d.measure(ctx, s)
	if err := d.stop(err); err != nil {
		return nil, err
	}
	part := used.Seconds() / span.Seconds()
	return []figure{{
		group:  "CPU of an idle node",
		what:   "three types, interval 30 s, quiet source",
		value:  fmt.Sprintf("%.2f%% of a core", 100*part),
		beside: fmt.Sprintf("%.0f ms of CPU in %.0f s", millis(used), span.Seconds()),
		goal:   "under 1% of a core", met: part < goalIdle,
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
http: {listen: "%s"}
log: {format: json}
`

// idleConfig makes both databases and the file of the configuration.
func (s *suite) idleConfig(ctx context.Context, folder, listen string) (string, error) {
	source, err := s.cluster.database(ctx, "quiet")
	if err != nil {
		return "", err
	}
	if err := execute(ctx, source, quietSQL); err != nil {
		return "", fmt.Errorf("fill the quiet source: %w", err)
	}
	coordination, err := s.cluster.database(ctx, "idle")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "config.yaml")
	text := fmt.Sprintf(idleYAML, coordination, source, filepath.Join(folder, "events.jsonl"), listen)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// freeAddress is one on which nobody listens at this moment.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// measure waits until the daemon is ready and warm, and then says how much CPU
// it has used in how much time.
func (d *daemon) measure(ctx context.Context, s *suite) (used, span time.Duration, err error) {
	if err := d.ready(ctx); err != nil {
		return 0, 0, err
	}
	s.progress("idle: the node is ready; measuring for %s after %s", s.idle, s.warmup)
	if err := d.live(ctx, s.warmup); err != nil {
		return 0, 0, err
	}
	before, err := d.cpu()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := d.live(ctx, s.idle); err != nil {
		return 0, 0, err
	}
	after, err := d.cpu()
	return after - before, time.Since(began), err
}
