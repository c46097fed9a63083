package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
)

// pollable is a source with an end.
type pollable interface {
	observer.Source
	Close() error
}

// visitor is shown each row that a bare loop has read.
type visitor func(id int64, status string)

// reading is how a kind of database is read.
type reading struct {
	// open opens our source.
	open func(url string) (pollable, error)
	// loop reads a table by the bare driver, in the order of a poll. The watch
	// runs from when it is connected. visit may be nil.
	loop func(ctx context.Context, url, table string, watch *stopwatch, visit visitor) (int64, error)
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

// sourceSpec describes the poll of a table of orders.
func sourceSpec(table string, detect observer.Detect) observer.Spec {
	if detect == "" {
		detect = observer.DetectNew
	}
	return observer.Spec{
		Stream: stream, EventType: events.TypeNewOrder, Detect: detect,
		Query: observer.Query{Table: table, Key: []string{"id"}, Timestamp: "updated_at"},
	}
}

// pollSource is one poll of a source, into the event log or into nothing. It
// counts the rows that were read, be they new or not.
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
	o, err := observer.New(sourceSpec(j.Table, j.Detect))
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
	return stats.Rows, err
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
	return r.loop(ctx, j.Source, j.Table, watch, nil)
}
