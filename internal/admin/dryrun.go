package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/wiring"
)

// dryRunBound is the number of new or changed rows, kept in memory, that ends a dry
// run.
const dryRunBound = 10000

// DryRun is the effect that a poll would have now.
type DryRun struct {
	Observer string `json:"observer"`
	Type     string `json:"type"`
	Source   string `json:"source"`
	Detect   string `json:"detect"`
	// From is the low-water mark; empty for the beginning of the source.
	From string `json:"from"`
	// SQL is the statement of the poll as it is sent; empty when none was.
	SQL string `json:"sql,omitempty"`
	// Blank says that there is no schema yet that could remember a row, so
	// that every row is new.
	Blank bool `json:"no_schema_yet"`
	// RowsRead, EventCount and DeadCount count everything, Rows, Events and
	// Dead hold the first of them.
	RowsRead   int64             `json:"rows_read"`
	EventCount int64             `json:"event_count"`
	DeadCount  int64             `json:"dead_count"`
	Rows       []DryRow          `json:"rows"`
	Events     []json.RawMessage `json:"events"`
	Dead       []DryDead         `json:"dead_rows"`
	// Ended is the number of new and changed rows after which the poll was ended
	// early; 0 means that it was not.
	Ended int `json:"ended_after,omitempty"`
}

// DryRow is a row as the source handed it over.
type DryRow struct {
	Key       string          `json:"key"`
	Timestamp string          `json:"timestamp,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	// Problem says why the row cannot be read.
	Problem string `json:"problem,omitempty"`
}

// DryDead is a poison row.
type DryDead struct {
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

// DryRun polls an observer without a lock and without writing anything, and
// returns up to limit rows and events; 0 means all of them. It needs no
// schema: before the first migration every row is new.
func (op *Operator) DryRun(ctx context.Context, id string, limit int) (_ DryRun, err error) {
	o, src, err := op.sourceOf(id)
	if err != nil {
		return DryRun{}, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	d := DryRun{Observer: id, Type: o.Type, Source: o.Source, Detect: o.Detect, Rows: []DryRow{}, Events: []json.RawMessage{}, Dead: []DryDead{}}
	st, err := op.peek(ctx, &d)
	if err != nil {
		return d, err
	}
	cursor, err := st.Cursor(ctx, id)
	if err != nil {
		return d, err
	}
	d.From = cursor.Low
	s := wiring.Spec(o, op.log)
	if op.db != nil { // A dry run needs no coordination database.
		s.Start.Began = op.db.Streams().Start
	}
	err = d.poll(ctx, s, src, st, limit)
	return d, err
}

// peek returns the store of the cluster, or an empty one before the first migration.
func (op *Operator) peek(ctx context.Context, d *DryRun) (observer.Store, error) {
	schema, err := op.Schema(ctx)
	if err != nil {
		return nil, err
	}
	if schema.Current == 0 {
		d.Blank = true
		return blank{}, nil
	}
	if err := op.ready(ctx); err != nil {
		return nil, err
	}
	return op.db.Peek(), nil
}

// errDryEnough ends a dry run that has found as much as it keeps.
var errDryEnough = errors.New("enough")

func (d *DryRun) poll(ctx context.Context, s observer.Spec, src source.Database, st observer.Store, limit int) error {
	// The changed rows are kept in memory.
	s.MaxChanged = max(dryRunBound, limit)
	made, err := observer.New(s)
	if err != nil {
		return err
	}
	limit = cmp.Or(limit, s.MaxChanged)
	recorded := &recorder{Source: src, limit: limit}
	changed := 0
	stats, err := made.Poll(ctx, recorded, observer.DryRun(st, func(ch observer.Chunk) error {
		d.add(ch, limit)
		if changed += len(ch.New) + len(ch.Changed); changed >= s.MaxChanged {
			return errDryEnough // MaxChanged does not end a statement that reads all rows.
		}
		return nil
	}))
	if errors.Is(err, errDryEnough) {
		err = nil
	}
	rows, ranges := recorded.taken()
	d.RowsRead, d.Rows = stats.Rows, append(d.Rows, rows...)
	if changed >= s.MaxChanged {
		d.Ended = changed
	}
	if len(ranges) > 0 {
		if q, failed := observer.WithKey(ctx, src, s.Query); failed == nil {
			text, _ := src.SQL(ctx, q, ranges[0])
			d.SQL = text.Full
		}
	}
	if err != nil {
		return fmt.Errorf("dry run: %w", err)
	}
	return nil
}

// add adds the rows and events that a chunk would have committed.
func (d *DryRun) add(ch observer.Chunk, limit int) {
	for i, e := range ch.Events {
		if len(d.Events) < limit {
			e.Seq = ch.Before.LastSeq + int64(i) + 1 // As the event log would number it.
			d.Events = append(d.Events, events.AppendJSON(nil, &e))
		}
	}
	for _, dead := range ch.Dead {
		if len(d.Dead) < limit {
			d.Dead = append(d.Dead, DryDead{Key: dead.Key, Reason: dead.Reason})
		}
	}
	d.EventCount += int64(len(ch.Events))
	d.DeadCount += int64(len(ch.Dead))
}

// recorder keeps the ranges that a poll reads from a source, and the first rows.
type recorder struct {
	observer.Source
	limit int

	mu     sync.Mutex
	rows   []DryRow
	ranges []observer.Range
}

func (r *recorder) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	r.mu.Lock()
	r.ranges = append(r.ranges, in)
	r.mu.Unlock()
	rows, err := r.Source.Read(ctx, q, in)
	if err != nil {
		return nil, err
	}
	return &recordedRows{Rows: rows, recorder: r}, nil
}

// taken returns what is kept.
func (r *recorder) taken() ([]DryRow, []observer.Range) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rows, r.ranges
}

func (r *recorder) keep(row *observer.Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rows) >= r.limit {
		return
	}
	kept := DryRow{Key: row.Key, Timestamp: row.Cursor, Data: slices.Clone(row.Data)}
	if row.Err != nil {
		// The readable part of a poison row may not be JSON.
		kept.Data, kept.Problem = nil, row.Err.Error()
	}
	if len(kept.Data) > 0 && !json.Valid(kept.Data) {
		kept.Data, kept.Problem = nil, "the row is not valid JSON"
	}
	r.rows = append(r.rows, kept)
}

type recordedRows struct {
	observer.Rows
	recorder *recorder
}

func (r *recordedRows) Next() bool {
	if !r.Rows.Next() {
		return false
	}
	r.recorder.keep(r.Row())
	return true
}

// blank is the empty store of a cluster without a schema. A dry run never commits to it.
type blank struct{ observer.Store }

func (blank) Cursor(_ context.Context, stream string) (observer.Cursor, error) {
	return observer.Cursor{Stream: stream}, nil
}

func (blank) Observed(_ context.Context, _ observer.Cursor, keys []string) ([]observer.Observed, error) {
	return make([]observer.Observed, len(keys)), nil
}

func (blank) Buried(_ context.Context, _ observer.Cursor, dead []observer.Dead) ([]observer.Burial, error) {
	return make([]observer.Burial, len(dead)), nil
}

func (blank) Generation(context.Context, observer.Cursor) (observer.Generation, error) {
	return observer.Generation{}, nil
}

func (blank) Live(context.Context, observer.Cursor, string, func(observer.Observed) error) error {
	return nil
}
