package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/observer"
)

const (
	goalFlat = 1.3
	// goalBare is the part of the rate of a bare loop.
	goalBare = 0.60
	// limiting is the share of the next stage's rate from which on a stage does
	// not hold it up.
	limiting = 0.8
)

// measureSources polls each kind of source beside its bare driver.
func measureSources(ctx context.Context, s *suite) ([]figure, error) {
	database, err := s.cluster.coordination(ctx, "sources")
	if err != nil {
		return nil, err
	}
	var figures []figure
	for _, one := range []struct {
		open  func(context.Context, *suite) (origin, error)
		sizes []int
	}{{openPostgres, s.sources}, {openMariaDB, s.sources}, {openOracle, s.emulated}} {
		o, err := one.open(ctx, s)
		if err != nil {
			return nil, err
		}
		b := &sourceBench{suite: s, origin: o, sizes: one.sizes, database: database}
		f, err := b.measure(ctx)
		o.close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.name(), err)
		}
		figures = append(figures, f...)
	}
	return figures, nil
}

// sourceBench measures one source.
type sourceBench struct {
	*suite
	origin
	sizes []int
	// database is the coordination database.
	database string
}

func (b *sourceBench) measure(ctx context.Context) (figures []figure, err error) {
	b.say("filling tables of up to %s rows", thousands(b.largest()))
	if err := b.fill(ctx, b.sizes); err != nil {
		return nil, err
	}
	for _, measure := range []func(context.Context) ([]figure, error){b.pace, b.trips, b.snapshot} {
		f, err := measure(ctx)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f...)
	}
	for i := range figures {
		figures[i].group = fmt.Sprintf("Source %s, up to %s rows", b.name(), thousands(b.largest()))
	}
	return figures, nil
}

func (b *sourceBench) largest() int { return b.sizes[len(b.sizes)-1] }

func (b *sourceBench) say(format string, args ...any) {
	b.progress("sources: %s: "+format, append([]any{b.name()}, args...)...)
}

// pace lets the bare loop, the poll that keeps nothing and the poll into the
// event log read the largest table in turns, and then polls the others.
func (b *sourceBench) pace(ctx context.Context) ([]figure, error) {
	loop := &contender{label: "bare driver loop", job: job{Kind: "bare loop"}}
	nothing := &contender{label: "poll that keeps nothing", job: job{Kind: "poll"}}
	log := &contender{label: "poll into the event log", job: job{Kind: "poll", Database: b.database}}
	for round := range b.sourceRounds {
		for _, c := range []*contender{loop, nothing, log} {
			o, err := b.once(ctx, c.job, b.largest())
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.label, err)
			}
			c.done = append(c.done, o)
			b.say("round %d, %s: %.0f rows/s, %.1f s of CPU, %d MiB", round+1, c.label, o.rate(), o.CPU, o.Peak>>20)
		}
	}
	part := ratioOf(nothing.done, loop.done, outcome.rate)
	figures := []figure{
		{
			what: nothing.label, value: nothing.did(), beside: say("%s%% of the bare loop", whole(100*part)),
			goal: "at least 60% of the bare loop", met: []bool{part >= goalBare},
		},
		{
			what: log.label, value: log.did(),
			beside: say("%s%% of the bare loop; the limit is %s",
				whole(100*ratioOf(log.done, loop.done, outcome.rate)), words{limitOf(log, nothing, loop)}),
		},
		{what: loop.label, value: loop.did()},
	}
	flat, err := b.flat(ctx, log)
	return append(figures, flat), err
}

// limitOf says what keeps a poll into the event log from being faster.
func limitOf(log, nothing, loop *contender) string {
	switch {
	case ratioOf(log.done, nothing.done, outcome.rate) < limiting:
		return "the coordination database"
	case ratioOf(nothing.done, loop.done, outcome.rate) < limiting:
		return "our encoding"
	}
	return "the source and its driver"
}

// flat compares the memory of polls of different sizes. The largest was
// polled already.
func (b *sourceBench) flat(ctx context.Context, largest *contender) (figure, error) {
	var peaks []int64
	for _, rows := range b.sizes[:len(b.sizes)-1] {
		c := contender{}
		for range b.sourceRounds {
			o, err := b.once(ctx, largest.job, rows)
			if err != nil {
				return figure{}, err
			}
			c.done = append(c.done, o)
		}
		peaks = append(peaks, c.peak())
	}
	peaks = append(peaks, largest.peak())
	growth := float64(peaks[len(peaks)-1]) / float64(peaks[0])
	return figure{
		what:   "peak memory of polls of " + listed(b.sizes, thousands[int]) + " rows",
		value:  memories(peaks),
		beside: say("the last is %s times the first", decimal(growth, 2)),
		goal:   fmt.Sprintf("at most %.1f times", goalFlat), met: []bool{growth <= goalFlat},
	}, nil
}

// once runs a job on a table of so many rows. A poll finds empty tables.
func (b *sourceBench) once(ctx context.Context, j job, rows int) (outcome, error) {
	if j.Database != "" {
		if err := b.empty(ctx); err != nil {
			return outcome{}, err
		}
	}
	return b.again(ctx, j, rows)
}

func (b *sourceBench) empty(ctx context.Context) error {
	return errors.Join(emptyTables(ctx, b.database), b.cluster.checkpoint(ctx))
}

// again runs a job on the tables as they are.
func (b *sourceBench) again(ctx context.Context, j job, rows int) (outcome, error) {
	j.Origin, j.Source, j.Table = b.kind(), b.url(), tableOf(rows)
	j.Name = strings.Join(append(strings.Fields(j.Kind), b.kind(), fmt.Sprint(rows)), "-")
	if j.Database != "" {
		j.Name += "-kept"
	}
	o, err := b.do(ctx, j)
	// A poll of several statements reads a row in which two of them meet twice.
	if err == nil && o.Rows < int64(rows) {
		err = fmt.Errorf("%s has read %d of %d rows", j.Kind, o.Rows, rows)
	}
	o.Rows = int64(rows)
	return o, err
}

// snapshot measures a second snapshot in which nothing has changed, of the two
// largest tables. What remembers the rows is the observer's, whatever the
// source, so PostgreSQL stands for all.
func (b *sourceBench) snapshot(ctx context.Context) ([]figure, error) {
	if b.kind() != kindPostgres {
		return nil, nil
	}
	sizes := b.sizes[len(b.sizes)-2:]
	j := job{Kind: "poll", Database: b.database, Detect: observer.DetectSnapshot}
	var peaks []int64
	for _, rows := range sizes {
		b.say("two snapshots of %s rows", thousands(rows))
		if _, err := b.once(ctx, j, rows); err != nil {
			return nil, err
		}
		second, err := b.again(ctx, j, rows)
		if err != nil {
			return nil, err
		}
		peaks = append(peaks, second.Peak)
	}
	each := float64(peaks[1]-peaks[0]) / float64(sizes[1]-sizes[0])
	return []figure{{
		what:   "memory of an unchanged snapshot of " + listed(sizes, thousands[int]) + " rows",
		value:  say("%s bytes per key", decimal(max(each, 0), 1)),
		beside: memories(peaks),
	}}, nil
}

// memories lists peaks of memory.
func memories(peaks []int64) phrase {
	var parts []part
	format := listed(peaks, func(peak int64) string {
		parts = append(parts, mebibytes(peak))
		return "%s MiB"
	})
	return say(format, parts...)
}

// listed writes values as a sentence does.
func listed[T any](values []T, text func(T) string) string {
	var texts []string
	for v := range slices.Values(values) {
		texts = append(texts, text(v))
	}
	last := len(texts) - 1
	if last < 1 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}
