package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/testbed"
	"github.com/observerd/observerd/test/kit/workload"
)

const (
	goalIdle = 0.01
	// goalIdleServer and goalIdleNodes are for idleNodes nodes with three types and an interval
	// of a second.
	goalIdleServer, goalIdleNodes = 0.08, 0.12
	goalIdleSessions              = 4
	// goalManyNodes is the server's for manyNodes nodes at the default interval.
	goalManyNodes = 0.10
)

// measureIdle runs the real binary, as it would be installed, with three types
// on a source in which nothing happens.
func measureIdle(ctx context.Context, s *suite) ([]figure, error) {
	bed, remove, err := newBed(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	c, err := s.idleConfig(ctx, bed.Folder)
	if err != nil {
		return nil, err
	}
	p, err := bed.Start(ctx, "idle", c)
	if err != nil {
		return nil, err
	}
	used, span, err := s.measureDaemon(ctx, p)
	if err := errors.Join(err, testbed.Stop(ctx, p)); err != nil {
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

// idleNodes is what nodes use on a source in which nothing happens.
type idleNodes struct {
	// server is the part of a core of the coordination database's sessions, nodes that of all nodes.
	server, nodes float64
	// sessions is how many a node has.
	sessions float64
}

// measureIdleNodes runs a cluster whose turns come every second.
func measureIdleNodes(ctx context.Context, s *suite) ([]figure, error) {
	idle, err := s.idleNodes(ctx, s.nodes, time.Second, s.idle/4)
	if err != nil {
		return nil, err
	}
	group := fmt.Sprintf("CPU of %d idle nodes, three types, interval 1 s, quiet source", s.nodes)
	return []figure{
		{
			group: group, what: "the sessions of the coordination database", value: say("%s%% of a core", decimal(100*idle.server, 1)),
			goal: "at most 8% of a core", met: []bool{idle.server <= goalIdleServer},
		},
		{group: group, what: "all nodes together", value: say("%s%% of a core", decimal(100*idle.nodes, 1)), goal: "at most 12% of a core", met: []bool{idle.nodes <= goalIdleNodes}},
		{
			group: group, what: "sessions of the coordination database for a node", value: say("%s", decimal(idle.sessions, 1)),
			goal: "at most 4", met: []bool{idle.sessions <= goalIdleSessions},
		},
	}, nil
}

// measureManyNodes runs a large cluster, whose turns come at the default interval.
func measureManyNodes(ctx context.Context, s *suite) ([]figure, error) {
	idle, err := s.idleNodes(ctx, s.manyNodes, 30*time.Second, s.idle)
	if err != nil {
		return nil, err
	}
	group := fmt.Sprintf("CPU of %d idle nodes, three types, interval 30 s, quiet source", s.manyNodes)
	return []figure{
		{
			group: group, what: "the sessions of the coordination database", value: say("%s%% of a core", decimal(100*idle.server, 1)),
			goal: "under 10% of a core", met: []bool{idle.server < goalManyNodes},
		},
		{group: group, what: "all nodes together", value: say("%s%% of a core", decimal(100*idle.nodes, 1))},
		{group: group, what: "sessions of the coordination database for a node", value: say("%s", decimal(idle.sessions, 1))},
	}, nil
}

// idleNodes runs so many nodes, and measures what they use in that span.
func (s *suite) idleNodes(ctx context.Context, n int, interval, span time.Duration) (idle idleNodes, err error) {
	bed, remove, err := newBed(ctx)
	if err != nil {
		return idle, err
	}
	defer remove()
	c, err := s.idleConfig(ctx, bed.Folder)
	if err != nil {
		return idle, err
	}
	c.Interval = interval
	nodes, stop, err := startNodes(ctx, bed, c, n)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return idle, err
	}
	if err := testbed.Sees(ctx, nodes); err != nil {
		return idle, err
	}
	parts, server, err := s.measureNodes(ctx, nodes, span, c.Database)
	if err != nil {
		return idle, err
	}
	sessions, err := s.cluster.sessionCPU(ctx, []string{c.Database})
	if err != nil {
		return idle, err
	}
	idle.server, idle.sessions = server, float64(len(sessions))/float64(n)
	for _, part := range parts {
		idle.nodes += part
	}
	return idle, nil
}

// measureNodes waits until nodes are warm, and measures which part of a core each of them uses
// in that span, and the server for the sessions of databases.
func (s *suite) measureNodes(ctx context.Context, nodes []*daemon.Process, span time.Duration, databases ...string) (parts []float64, server float64, err error) {
	if err := live(ctx, nodes[0], s.warmup); err != nil {
		return nil, 0, err
	}
	used := make([]time.Duration, len(nodes))
	for i, p := range nodes {
		if used[i], err = cpuOf(p.PID()); err != nil {
			return nil, 0, err
		}
	}
	before, err := s.cluster.sessionCPU(ctx, databases)
	if err != nil {
		return nil, 0, err
	}
	began := time.Now()
	if err := live(ctx, nodes[0], span); err != nil {
		return nil, 0, err
	}
	took := time.Since(began).Seconds()
	after, err := s.cluster.sessionCPU(ctx, databases)
	if err != nil {
		return nil, 0, err
	}
	for pid, cpu := range after {
		server += (cpu - before[pid]).Seconds() / took
	}
	for i, p := range nodes {
		now, err := cpuOf(p.PID())
		if err != nil {
			return nil, 0, err
		}
		parts = append(parts, (now-used[i]).Seconds()/took)
	}
	return parts, server, nil
}

// idleConfig makes both databases. The intervals are those that the program has by
// itself.
func (s *suite) idleConfig(ctx context.Context, folder string) (daemon.Config, error) {
	source, err := s.cluster.database(ctx, "quiet")
	if err != nil {
		return daemon.Config{}, err
	}
	err = errors.Join(workload.Create(ctx, source, 0), testbed.Execute(ctx, source,
		`INSERT INTO orders SELECT i, 1, 'RELEASED', '2026-01-01Z'::timestamptz + i * interval '1 second' FROM generate_series(1, 1000) AS i`))
	if err != nil {
		return daemon.Config{}, fmt.Errorf("fill the quiet source: %w", err)
	}
	coordination, err := s.cluster.database(ctx, "idle")
	return daemon.Config{
		Node: "observerd", Database: coordination, Sources: map[string]string{"warehouse": source},
		Observers: []string{
			"{id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at}",
			"{id: stock, type: inventory, source: warehouse, table: stock, key: sku}",
			"{id: tasks, type: wes, source: warehouse, table: tasks, key: task_id, timestamp: updated_at}",
		},
		Files:    map[string]string{"file": filepath.Join(folder, "events.jsonl")},
		Interval: 30 * time.Second, TTL: time.Minute, LogLevel: "info",
	}, err
}

// measureDaemon waits until the daemon is warm, and then says how much CPU it has
// used in how much time.
func (s *suite) measureDaemon(ctx context.Context, p *daemon.Process) (used, span time.Duration, err error) {
	s.progress("idle: the node is ready; measuring for %s after %s", s.idle, s.warmup)
	if err := live(ctx, p, s.warmup); err != nil {
		return 0, 0, err
	}
	before, err := cpuOf(p.PID())
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := live(ctx, p, s.idle); err != nil {
		return 0, 0, err
	}
	after, err := cpuOf(p.PID())
	return after - before, time.Since(began), err
}
