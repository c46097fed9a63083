package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

const (
	goalShare  = 0.95
	goalRate   = 40_000
	fastLoop   = 80_000
	goalMemory = 100 << 20
)

// contender is one side of the backlog.
type contender struct {
	label string
	job   job
	done  []outcome
}

func (c *contender) rate() float64 { return medianOf(c.done, outcome.rate) }
func (c *contender) cpu() float64  { return medianOf(c.done, outcome.perRow) }

// peak is the highest of all rounds: a limit is a limit.
func (c *contender) peak() int64 {
	var peak int64
	for _, o := range c.done {
		peak = max(peak, o.Peak)
	}
	return peak
}

// backlog is the poll of a table that was never polled, beside a loop and a
// bare COPY.
type backlog struct {
	*suite
	source, database, folder string
	contenders               []*contender
}

func measureBacklog(ctx context.Context, s *suite) ([]figure, error) {
	s.progress("backlog: filling a source with %d rows", s.rows)
	b := &backlog{suite: s}
	var err error
	if b.source, err = s.makeOrders(ctx, s.rows); err != nil {
		return nil, err
	}
	if b.database, err = s.cluster.coordination(ctx, "backlog"); err != nil {
		return nil, err
	}
	if b.folder, err = os.MkdirTemp("", "observerd-bench-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.folder)
	b.contenders = contenders(s.chunks, s.loops)
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	if err := b.race(ctx); err != nil {
		return nil, err
	}
	return b.figures(), nil
}

// contenders are the loop, the poll as it comes, the bare COPY, and polls and
// loops with other chunks.
func contenders(chunks, loops []int) []*contender {
	all := []*contender{
		{label: "hand-written loop", job: job{Kind: "loop", Chunk: loopChunk}},
		{label: "poll, default chunk", job: pollOf(0)},
		{label: "bare COPY of encoded rows", job: job{Kind: "copy"}},
	}
	for _, n := range chunks {
		all = append(all, &contender{label: "poll, chunks of " + thousands(n), job: pollOf(n)})
	}
	for _, n := range loops {
		all = append(all, &contender{label: "hand-written loop, chunks of " + thousands(n), job: job{Kind: "loop", Chunk: n}})
	}
	return all
}

// pollOf is the poll of the orders in chunks of that size.
func pollOf(chunk int) job {
	return job{Kind: "poll", Chunk: chunk, Origin: kindPostgres, Table: "orders"}
}

// prepare proves that loop and poll store the same rows, and keeps them for
// the bare COPY.
func (b *backlog) prepare(ctx context.Context) error {
	var sums [2]string
	for i, c := range b.contenders[:2] {
		if _, err := b.once(ctx, c); err != nil {
			return err
		}
		sum, err := contents(ctx, b.database)
		if err != nil {
			return err
		}
		sums[i] = sum
	}
	if sums[0] != sums[1] {
		return fmt.Errorf("loop and poll have stored different rows: %s and %s", sums[0], sums[1])
	}
	return unload(ctx, b.database, b.folder)
}

// race lets everybody run once a round, in turns.
func (b *backlog) race(ctx context.Context) error {
	for round := range b.rounds {
		for _, c := range b.contenders {
			o, err := b.once(ctx, c)
			if err != nil {
				return err
			}
			c.done = append(c.done, o)
			b.progress("backlog: round %d, %s: %.0f rows/s, %.1f s of CPU, %d MiB", round+1, c.label, o.rate(), o.CPU, o.Peak>>20)
		}
	}
	return nil
}

// once runs a side on empty tables.
func (b *backlog) once(ctx context.Context, c *contender) (outcome, error) {
	if err := emptyTables(ctx, b.database); err != nil {
		return outcome{}, err
	}
	if err := b.cluster.checkpoint(ctx); err != nil {
		return outcome{}, err
	}
	c.job.Source, c.job.Database, c.job.Folder = b.source, b.database, b.folder
	c.job.Name = strings.NewReplacer(" ", "-", ",", "").Replace(c.label)
	o, err := b.do(ctx, c.job)
	if err == nil && o.Rows != int64(b.rows) {
		err = fmt.Errorf("%s handled %d of %d rows", c.label, o.Rows, b.rows)
	}
	return o, err
}
