package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

const (
	// lateInterval is the distance between two polls.
	lateInterval = 100 * time.Millisecond
	// lateStream is polled as always, newestStream from the newest row on.
	lateStream, newestStream = "bench-late", "bench-newest"
)

// newest is a source without a horizon: polls go on from the newest timestamp
// that they have seen, as those of a plain cursor do.
type newest struct{ pollable }

// Horizon implements [observer.Source]. Every row is below it.
func (newest) Horizon(context.Context, observer.Query) (observer.Horizon, error) {
	return observer.Horizon{Cursor: "9999-12-31"}, nil
}

// late lets writers commit late while two streams are polled, with the horizon
// and without it, and finds out what each of them has seen, and when.
func (b *sourceBench) late(ctx context.Context) ([]figure, error) {
	b.say("transactions commit late for %s", b.suite.late)
	if err := b.empty(ctx); err != nil {
		return nil, err
	}
	r, err := readingOf(b.kind())
	if err != nil {
		return nil, err
	}
	w := newLateWriters(b.origin)
	inexact, err := b.pollBeside(ctx, r, func(ctx context.Context) error { return w.write(ctx, b.suite.late) })
	if err != nil {
		return nil, err
	}
	final := map[int64]string{}
	_, err = r.loop(ctx, b.url(), lateTable, &stopwatch{}, func(id int64, status string) { final[id] = status })
	if err != nil {
		return nil, err
	}
	return b.audit(ctx, w, final, inexact)
}

// pollBeside polls both streams while work is done, and says how many polls had
// no exact horizon.
func (b *sourceBench) pollBeside(ctx context.Context, r reading, work func(context.Context) error) (inexact int, err error) {
	db, err := openStore(ctx, b.database)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	src, err := r.open(b.url())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	l := &latePolls{db: db}
	if err := l.prepare(ctx, src); err != nil {
		return 0, err
	}
	err = l.while(ctx, work)
	for _, s := range l.streams {
		inexact += s.inexact
	}
	return inexact, err
}

// latePolls polls both streams, side by side: each has its own interval and its
// own lease, so neither waits for the other.
type latePolls struct {
	db      *lockdb.DB
	streams []*lateStreamPoll
}

type lateStreamPoll struct {
	observer *observer.Observer
	source   observer.Source
	store    observer.Store
	// inexact are the polls with a horizon that was only the overlap.
	inexact int
}

func (l *latePolls) prepare(ctx context.Context, src pollable) error {
	for name, from := range map[string]observer.Source{lateStream: src, newestStream: newest{src}} {
		spec := sourceSpec(lateTable, observer.DetectChange)
		spec.Stream = name
		o, err := observer.New(spec)
		if err != nil {
			return err
		}
		g, err := l.db.Leases().Acquire(ctx, request(name))
		if err != nil {
			return err
		}
		l.streams = append(l.streams, &lateStreamPoll{observer: o, source: from, store: l.db.Store(g)})
	}
	return nil
}

// while polls until work has ended, and once more.
func (l *latePolls) while(ctx context.Context, work func(context.Context) error) error {
	tasks, ctx := errgroup.WithContext(ctx)
	done := make(chan struct{})
	tasks.Go(func() error {
		defer close(done)
		return work(ctx)
	})
	for _, s := range l.streams {
		tasks.Go(func() error { return s.until(ctx, done) })
	}
	return tasks.Wait()
}

func (s *lateStreamPoll) until(ctx context.Context, done <-chan struct{}) error {
	ticks := time.NewTicker(lateInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			if err := s.poll(ctx); err != nil {
				return err
			}
		case <-done:
			return s.poll(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *lateStreamPoll) poll(ctx context.Context) error {
	stats, err := s.observer.Poll(ctx, s.source, s.store)
	if err != nil {
		return fmt.Errorf("poll beside writers: %w", err)
	}
	if _, plain := s.source.(newest); !plain && !stats.ExactHorizon {
		s.inexact++
	}
	return nil
}
