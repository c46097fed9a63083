package main

import (
	"context"
	"fmt"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/testbed"
)

// changedSQL changes a thousandth of the orders, which are scattered over the table.
const changedSQL = `UPDATE orders SET status = 'ROUND ' || %[1]d WHERE id %% 1000 = %[1]d`

// goalSnapshot is how many times longer than the comparison in memory a snapshot may take.
const goalSnapshot = 1.5

// measureSnapshot reads all rows of a table of which a thousandth has changed, beside a
// program that remembers a hash of each row in its memory.
func measureSnapshot(ctx context.Context, s *suite) (_ []figure, err error) {
	s.progress("snapshot: filling a source with %d rows", s.rows)
	j := job{Kind: "poll", Origin: kindPostgres, Table: "orders", Detect: observer.DetectSnapshot, Name: "snapshot-poll"}
	if j.Source, err = s.makeOrders(ctx, s.rows); err != nil {
		return nil, err
	}
	if j.Database, err = s.cluster.coordination(ctx, "snapshot"); err != nil {
		return nil, err
	}
	first, err := s.do(ctx, j)
	if err != nil {
		return nil, err
	}
	if err := testbed.Execute(ctx, j.Database, "VACUUM ANALYZE obs_observed, obs_event"); err != nil {
		return nil, err
	}
	ours, bare := &contender{label: "snapshot", job: j}, &contender{label: "hash diff", job: job{Kind: "hash diff", Source: j.Source, Name: "hash-diff"}}
	for round := range s.rounds {
		if err := testbed.Execute(ctx, j.Source, fmt.Sprintf(changedSQL, round+1)); err != nil {
			return nil, err
		}
		for _, c := range []*contender{bare, ours} {
			if err := s.cluster.checkpoint(ctx); err != nil {
				return nil, err
			}
			o, err := s.do(ctx, c.job)
			if err != nil {
				return nil, err
			}
			if o.Rows < int64(s.rows) {
				return nil, fmt.Errorf("%s has read %d of %d rows", c.label, o.Rows, s.rows)
			}
			c.done = append(c.done, o)
			s.progress("snapshot: round %d, %s: %.2f s, %.2f s of CPU, %d MiB", round+1, c.label, o.Seconds, o.CPU, o.Peak>>20)
		}
	}
	group := fmt.Sprintf("Snapshot of %s rows on PostgreSQL, of which 0.1%% have changed", thousands(s.rows))
	times := ratioOf(ours.done, bare.done, func(o outcome) float64 { return o.Seconds })
	return []figure{
		{
			group: group, what: "snapshot", value: say("%s s, %s µs CPU/row, %s MiB", decimal(medianOf(ours.done, func(o outcome) float64 { return o.Seconds }), 2), decimal(ours.cpu(), 1), mebibytes(ours.peak())),
			beside: say("%s times the hash diff", decimal(times, 2)), goal: "at most 1.5 times the hash diff", met: []bool{times <= goalSnapshot},
		},
		{group: group, what: "hash diff in memory", value: say("%s s, %s µs CPU/row, %s MiB", decimal(medianOf(bare.done, func(o outcome) float64 { return o.Seconds }), 2), decimal(bare.cpu(), 1), mebibytes(bare.peak()))},
		{group: group, what: "first snapshot", value: say("%s s", decimal(first.Seconds, 2))},
	}, nil
}
