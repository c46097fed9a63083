package observer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// BenchmarkPoll measures what a poll costs beside its source and its store,
// with rows of 200 bytes.
func BenchmarkPoll(b *testing.B) {
	const rows = 100_000
	table := newBench(rows)
	for _, detect := range []observer.Detect{observer.DetectNew, observer.DetectSnapshot} {
		for name, known := range map[string]map[string]observer.Observed{"new": nil, "unchanged": table.observed(b)} {
			b.Run(fmt.Sprintf("%s/%s", detect, name), func(b *testing.B) {
				o, err := observer.New(observer.Spec{
					Stream: stream, EventType: "E", Detect: detect,
					Query: observer.Query{Table: "t", Key: []string{"id"}},
				})
				if err != nil {
					b.Fatal(err)
				}
				st := &sinkStore{known: known}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := o.Poll(b.Context(), table, st); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// benchTable is a source that costs next to nothing.
type benchTable struct{ rows []observer.Row }

func newBench(n int) *benchTable {
	t := &benchTable{}
	for i := range n {
		data := fmt.Appendf(nil, `{"id":%q,"text":%q}`, key(i), strings.Repeat("x", 175))
		t.rows = append(t.rows, observer.Row{Key: key(i), Data: data})
	}
	return t
}

// observed is what a poll remembers of the table.
func (t *benchTable) observed(b *testing.B) map[string]observer.Observed {
	b.Helper()
	known := make(map[string]observer.Observed)
	o, err := observer.New(observer.Spec{
		Stream: stream, EventType: "E", Detect: observer.DetectNew,
		Query: observer.Query{Table: "t", Key: []string{"id"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	st := &sinkStore{visit: func(ch observer.Chunk) {
		for _, n := range ch.New {
			known[n.Key] = n
		}
	}}
	if _, err := o.Poll(b.Context(), t, st); err != nil {
		b.Fatal(err)
	}
	return known
}

func (*benchTable) Horizon(context.Context, observer.Query) (observer.Horizon, error) {
	return observer.Horizon{}, nil
}
func (*benchTable) Identity(context.Context) (string, error) { return "", nil }
func (*benchTable) CursorAt(context.Context, observer.Query, time.Time) (string, error) {
	return "", nil
}
func (*benchTable) Restate(cursor, _ string) string { return cursor }
func (*benchTable) Compare(x, y string) int         { return strings.Compare(x, y) }

func (t *benchTable) Read(context.Context, observer.Query, observer.Range) (observer.Rows, error) {
	return &benchRows{left: t.rows}, nil
}

type benchRows struct {
	left []observer.Row
	row  *observer.Row
}

func (r *benchRows) Next() bool {
	if len(r.left) == 0 {
		return false
	}
	r.row, r.left = &r.left[0], r.left[1:]
	return true
}
func (r *benchRows) Columns() []observer.Column       { return nil }
func (r *benchRows) KeyColumns() []observer.KeyColumn { return nil }
func (r *benchRows) KeyOrder() string                 { return "" }
func (r *benchRows) Row() *observer.Row               { return r.row }
func (r *benchRows) Err() error                       { return nil }
func (r *benchRows) Close() error                     { return nil }

// sinkStore knows a fixed set of keys and forgets every chunk.
type sinkStore struct {
	known map[string]observer.Observed
	visit func(observer.Chunk)
}

func (s *sinkStore) Cursor(context.Context, string) (observer.Cursor, error) {
	n := int64(len(s.known))
	return observer.Cursor{Rows: n, Live: n}, nil
}

func (s *sinkStore) Observed(_ context.Context, _ observer.Cursor, keys []string) ([]observer.Observed, error) {
	known := make([]observer.Observed, len(keys))
	for i, key := range keys {
		known[i] = s.known[key]
	}
	return known, nil
}

func (*sinkStore) Live(context.Context, observer.Cursor, string, func(observer.Observed) error) error {
	return nil
}

func (s *sinkStore) Commit(_ context.Context, ch observer.Chunk) (observer.Cursor, error) {
	if s.visit != nil {
		s.visit(ch)
	}
	return ch.After, nil
}

func (s *sinkStore) Buried(_ context.Context, _ observer.Cursor, dead []observer.Dead) ([]observer.Burial, error) {
	return make([]observer.Burial, len(dead)), nil
}

func (t *benchTable) PrimaryKey(context.Context, observer.Query) ([]string, error) { return nil, nil }

func (t *benchTable) KeyOrder(context.Context, observer.Query) (string, error) { return "", nil }

func (s *sinkStore) Generation(context.Context, observer.Cursor) (observer.Generation, error) {
	return observer.Generation{}, nil
}
