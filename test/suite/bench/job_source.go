package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/observerd/observerd/internal/observer"
)

// pollable is a source with an end.
type pollable interface {
	observer.Source
	Close() error
}

// reading is how a kind of database is read.
type reading struct {
	// open opens our source.
	open func(url string) (pollable, error)
	// loop reads a table by the bare driver, in the order of a poll. The watch
	// runs from when it is connected.
	loop func(ctx context.Context, url, table string, watch *stopwatch) (int64, error)
}

// readings are by the kind of the origin.
func readings() map[string]reading {
	return map[string]reading{
		kindPostgres: {openPostgresSource, loopPostgres},
		kindMariaDB:  {openMariaDBSource, loopMariaDB},
		kindOracle:   {openOracleSource, loopOracle},
	}
}

func readingOf(kind string) (reading, error) {
	r, known := readings()[kind]
	if !known {
		return reading{}, fmt.Errorf("no kind of source is named %q", kind)
	}
	return r, nil
}

// pollSource is our side: one poll, from the cursor to the last commit, under a lease,
// into the event log, or into nothing. Of rows that are all new it counts the events:
// a poll of several statements reads some rows twice. A snapshot counts what it reads.
func pollSource(ctx context.Context, j job, watch *stopwatch) (n int64, err error) {
	r, err := readingOf(j.Origin)
	if err != nil {
		return 0, err
	}
	src, err := r.open(j.Source)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	spec := orderSpec(j.Table, j.Detect, j.Chunk)
	spec.StatementTime = j.StatementTime
	o, err := observer.New(spec)
	if err != nil {
		return 0, err
	}
	if j.Database == "" {
		return pollNowhere(ctx, o, src, watch)
	}
	db, err := openStore(ctx, j.Database)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	stats, err := pollLeased(ctx, o, src, db, watch)
	if j.Detect == observer.DetectSnapshot {
		return stats.Rows, err
	}
	return stats.Events, err
}

func pollNowhere(ctx context.Context, o *observer.Observer, src observer.Source, watch *stopwatch) (int64, error) {
	watch.start()
	defer watch.stop()
	stats, err := o.Poll(ctx, src, nowhere{})
	return stats.Events, err
}

// loopSource reads the same rows by the bare driver.
func loopSource(ctx context.Context, j job, watch *stopwatch) (int64, error) {
	r, err := readingOf(j.Origin)
	if err != nil {
		return 0, err
	}
	return r.loop(ctx, j.Source, j.Table, watch)
}
