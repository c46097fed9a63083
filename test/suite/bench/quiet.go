package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/testbed"
)

// quietRows are in the table that quiet polls find unchanged.
const quietRows = 1_000

// measureQuiet polls each kind of source in which nothing happens: what every user pays for.
func measureQuiet(ctx context.Context, s *suite) ([]figure, error) {
	database, err := s.cluster.coordination(ctx, "quiet")
	if err != nil {
		return nil, err
	}
	var figures []figure
	for _, open := range []func(context.Context, *suite) (origin, error){openPostgres, openMariaDB, openOracle} {
		o, err := open(ctx, s)
		if err != nil {
			return nil, err
		}
		q := quiet{suite: s, origin: o, database: database}
		f, err := q.measure(ctx)
		o.close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.name(), err)
		}
		figures = append(figures, f...)
	}
	return figures, nil
}

// quiet measures the quiet polls of one source.
type quiet struct {
	*suite
	origin
	database string
	reads    observer.Query
}

// watched is a view of the table.
const watched = "watched"

func (q quiet) measure(ctx context.Context) ([]figure, error) {
	if err := q.fill(ctx, []int{quietRows}); err != nil {
		return nil, err
	}
	table := tableOf(quietRows)
	q.reads = observer.Query{Table: table}
	figures, err := q.measureReads(ctx, "Quiet poll, source "+q.name())
	if err != nil || q.kind() != kindPostgres {
		return figures, err
	}
	if err := testbed.Execute(ctx, q.url(), "CREATE VIEW "+watched+" AS SELECT * FROM "+table); err != nil {
		return nil, err
	}
	q.reads = observer.Query{Table: watched}
	view, err := q.measureReads(ctx, "Quiet poll of a view, source "+q.name())
	if err != nil {
		return nil, err
	}
	q.reads = observer.Query{SQL: "SELECT * FROM " + table}
	query, err := q.measureReads(ctx, "Quiet poll of a query, source "+q.name())
	return slices.Concat(figures, view, query), err
}

func (q quiet) measureReads(ctx context.Context, group string) ([]figure, error) {
	way, err := q.counted(ctx)
	if err != nil {
		return nil, err
	}
	counted, err := q.poll(ctx, way.url, 1, way.trips)
	way.close()
	if err != nil {
		return nil, err
	}
	timed, err := q.poll(ctx, q.url(), q.quietPolls, way.trips)
	if err != nil {
		return nil, err
	}
	figures := []figure{
		{what: "round trips to the source", value: say("%s", whole(counted.trips))},
		{what: "from the cursor to the release of the lease", value: say("%s ms", milliseconds(median(timed.took)))},
	}
	each := func(cpu time.Duration) phrase {
		return say("%s ms", decimal(float64(cpu)/float64(time.Millisecond)/float64(len(timed.took)), 2))
	}
	if q.kind() == kindPostgres {
		figures = append(figures, figure{what: "CPU of the source", value: each(timed.source)})
	}
	figures = append(figures, figure{what: "CPU of the coordination database", value: each(timed.coordination)})
	for i := range figures {
		figures[i].group = group
	}
	return figures, nil
}

// quietly is what quiet polls have cost.
type quietly struct {
	took  []time.Duration
	trips int64
	// source is the CPU time of the sessions of a PostgreSQL source, zero of others.
	source, coordination time.Duration
}

// poll reads all rows, polls once more on the open sessions, and measures n further polls.
func (q quiet) poll(ctx context.Context, url string, n int, trips func() int64) (cost quietly, err error) {
	r, err := readingOf(q.kind())
	if err != nil {
		return quietly{}, err
	}
	src, err := r.open(url)
	if err != nil {
		return quietly{}, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	db, err := openStore(ctx, q.database)
	if err != nil {
		return quietly{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := emptyTables(ctx, q.database); err != nil {
		return quietly{}, err
	}
	spec := orderSpec(q.reads.Table, observer.DetectChange, 0)
	spec.Query.SQL = q.reads.SQL
	o, err := observer.New(spec)
	if err != nil {
		return quietly{}, err
	}
	for range 2 {
		if _, err := q.once(ctx, o, src, db); err != nil {
			return quietly{}, err
		}
	}
	before, source := trips(), q.sourceCPU(ctx)
	coordination, err := q.cluster.cpu(ctx, q.database)
	if err != nil {
		return quietly{}, err
	}
	for range n {
		took, err := q.once(ctx, o, src, db)
		if err != nil {
			return quietly{}, err
		}
		cost.took = append(cost.took, took)
	}
	cost.trips, cost.source = trips()-before, q.sourceCPU(ctx)-source
	cost.coordination, err = q.cluster.cpu(ctx, q.database)
	cost.coordination -= coordination
	return cost, err
}

func (quiet) once(ctx context.Context, o *observer.Observer, src observer.Source, db *lockdb.DB) (time.Duration, error) {
	var watch stopwatch
	_, err := pollLeased(ctx, o, src, db, &watch)
	return watch.took, err
}

// sourceCPU is what the sessions of a PostgreSQL source have used; zero of others.
func (q quiet) sourceCPU(ctx context.Context) time.Duration {
	if q.kind() != kindPostgres {
		return 0
	}
	used, _ := q.cluster.cpu(ctx, q.url())
	return used
}
