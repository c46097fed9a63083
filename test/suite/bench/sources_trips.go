package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/observerd/observerd/internal/observer"
)

// trips counts the round trips to the source of a poll of the smallest table,
// on sessions that are open, as they are in every poll but the first.
func (b *sourceBench) trips(ctx context.Context) ([]figure, error) {
	rows := b.sizes[0]
	polled, err := b.countPoll(ctx, rows)
	if err != nil {
		return nil, err
	}
	bare, err := b.countLoop(ctx, rows)
	if err != nil {
		return nil, err
	}
	each := func(format string, n int64) phrase {
		return say(format, decimal(float64(n)/float64(rows)*1000, 1), whole(n))
	}
	return []figure{{
		what:   fmt.Sprintf("round trips of a poll of %s rows", thousands(rows)),
		value:  each("%s per 1,000 rows, %s in all", polled),
		beside: each("bare loop %s per 1,000 rows, %s in all", bare),
	}}, nil
}

// counting counts the round trips while a watch runs.
func (c counted) counting() (watch *stopwatch, count func() int64) {
	var before, after int64
	look := func() { before, after = after, c.trips() }
	return &stopwatch{look: look}, func() int64 { return after - before }
}

func (b *sourceBench) countPoll(ctx context.Context, rows int) (n int64, err error) {
	way, err := b.counted(ctx)
	if err != nil {
		return 0, err
	}
	defer way.close()
	r, err := readingOf(b.kind())
	if err != nil {
		return 0, err
	}
	src, err := r.open(way.url)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	o, err := observer.New(orderSpec(tableOf(rows), observer.DetectNew, 0))
	if err != nil {
		return 0, err
	}
	// The first poll logs on.
	for range 2 {
		watch, count := way.counting()
		read, err := pollNowhere(ctx, o, src, watch)
		if err != nil {
			return 0, err
		}
		if read < int64(rows) {
			return 0, fmt.Errorf("a poll has read %d of %d rows", read, rows)
		}
		n = count()
	}
	return n, nil
}

func (b *sourceBench) countLoop(ctx context.Context, rows int) (int64, error) {
	way, err := b.counted(ctx)
	if err != nil {
		return 0, err
	}
	defer way.close()
	r, err := readingOf(b.kind())
	if err != nil {
		return 0, err
	}
	watch, count := way.counting()
	_, err = r.loop(ctx, way.url, tableOf(rows), watch)
	return count(), err
}
