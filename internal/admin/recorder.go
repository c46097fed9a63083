package admin

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/observerd/observerd/internal/observer"
)

// recorder keeps the ranges that a poll reads from a source, and the first rows.
type recorder struct {
	observer.Source
	limit int

	mu     sync.Mutex
	rows   []DryRow
	ranges []observer.Range
}

// Read implements [observer.Source].
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

// taken returns the kept rows.
func (r *recorder) taken() []DryRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rows
}

// first returns the range of the first read, false when there was none.
func (r *recorder) first() (observer.Range, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ranges) == 0 {
		return observer.Range{}, false
	}
	return r.ranges[0], true
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

// Next implements [observer.Rows].
func (r *recordedRows) Next() bool {
	if !r.Rows.Next() {
		return false
	}
	r.recorder.keep(r.Row())
	return true
}

// blank is the empty store of a cluster without a schema.
type blank struct{}

// Cursor implements [observer.Store].
func (blank) Cursor(_ context.Context, stream string) (observer.Cursor, error) {
	return observer.Cursor{Stream: stream}, nil
}

// Observed implements [observer.Store].
func (blank) Observed(context.Context, observer.Cursor, []string) (map[string]observer.Observed, error) {
	return map[string]observer.Observed{}, nil
}

// Buried implements [observer.Store].
func (blank) Buried(_ context.Context, _ observer.Cursor, dead []observer.Dead) ([]observer.Burial, error) {
	return make([]observer.Burial, len(dead)), nil
}

// Generation implements [observer.Store].
func (blank) Generation(context.Context, observer.Cursor) (observer.Generation, error) {
	return observer.Generation{}, nil
}

// Live implements [observer.Store].
func (blank) Live(context.Context, observer.Cursor, string, func(observer.Observed) error) error {
	return nil
}

// Commit implements [observer.Store]. A dry run never gets here.
func (blank) Commit(_ context.Context, ch observer.Chunk) (observer.Cursor, error) {
	return ch.After, nil
}
