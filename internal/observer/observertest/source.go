package observertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
)

// Source is a table in memory. Its clock is a counter of seconds that every
// statement moves, so timestamps are unique unless a test sets them or turns
// the clock back. The zero value is not ready; see [NewSource].
type Source struct {
	mu sync.Mutex
	// clock is what the source shows, passed the time that has really passed.
	clock, passed int64
	identity      string
	columns       []observer.Column
	keys          []observer.KeyColumn
	rows          []observer.Row
	open          map[*Tx]struct{}
	reads         []observer.Range
	ties          string
	members       string // of columns that were added

	// Unordered says that the table has no timestamp: rows have no cursor and
	// every read returns all of them. It is set before the first row.
	Unordered bool
	// Keyed says that an index serves the key. Its order takes upper and lower case
	// for equal.
	Keyed bool
	// Order is that of the index; empty means "key".
	Order string
	// Primary is the primary key.
	Primary []string
	// Step is called before each call and each row; its error takes their
	// place. Nil means none.
	Step func(call string) error
}

// NewSource returns an empty table without an identity.
func NewSource() *Source {
	return &Source{
		open:    make(map[*Tx]struct{}),
		columns: []observer.Column{{Name: "id", Type: "text"}, {Name: "value", Type: "text"}},
		keys:    []observer.KeyColumn{{Column: observer.Column{Name: "id", Type: "text"}}},
	}
}

// epoch is the instant of cursor 0.
var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// CursorAt is the text of a timestamp.
func CursorAt(clock int64) string { return fmt.Sprintf("%012d", clock) }

// Time is the instant of a timestamp.
func Time(clock int64) time.Time { return epoch.Add(time.Duration(clock) * time.Second) }

// At is a row of that key with data made of the value. A negative clock means
// a NULL timestamp.
func At(key, value string, clock int64) observer.Row {
	r := observer.Row{Key: key, Data: fmt.Appendf(nil, `{"id":%q,"value":%q}`, key, value)}
	if clock >= 0 {
		r.Cursor, r.Time = CursorAt(clock), Time(clock)
	}
	return r
}

// Add appends rows as they are, also a second one of a key.
func (s *Source) Add(rows ...observer.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rows {
		s.add(r)
	}
}

func (s *Source) add(r observer.Row) {
	if s.Unordered {
		r.Cursor, r.Time = "", time.Time{}
	}
	r.Data = withMembers(r.Data, s.members)
	s.rows = append(s.rows, r)
}

// Put inserts or replaces a row with the present timestamp.
func (s *Source) Put(key, value string) {
	tx := s.Begin()
	tx.Put(key, value)
	tx.Commit()
}

// Delete removes every row of the key.
func (s *Source) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delete(key)
}

func (s *Source) delete(key string) {
	for i := len(s.rows) - 1; i >= 0; i-- { // By index: a copy of each row is dear under the race detector.
		if s.rows[i].Key == key {
			s.rows = slices.Delete(s.rows, i, i+1)
		}
	}
}

// Rows returns the rows that a read from the beginning would return.
func (s *Source) Rows() []observer.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.selected(observer.Range{}, false)
}

// Restore puts the rows of a backup in place of those that are there. Open
// transactions end without a trace, and the clock stays.
func (s *Source) Restore(rows []observer.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = slices.Clone(rows)
	clear(s.open)
}

// SetIdentity changes the identity of the source, at first none: "".
func (s *Source) SetIdentity(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.identity = id
}

// SetKeyColumns changes what later reads say of the columns of the key, not their keys,
// which are in the normal form where the query asks for that.
func (s *Source) SetKeyColumns(columns ...observer.KeyColumn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = columns
}

// SetColumns changes what later reads say of their columns, not their data.
func (s *Source) SetColumns(columns ...observer.Column) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.columns = columns
}

// Reads returns where each read began.
func (s *Source) Reads() []string {
	return fn.Each(s.Ranges(), func(r observer.Range) string { return r.From })
}

// Ranges returns the range of each read.
func (s *Source) Ranges() []observer.Range {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reads)
}

// selected returns the rows of a range, those without a cursor first, or not at
// all if dated.
func (s *Source) selected(in observer.Range, dated bool) []observer.Row {
	rows := slices.Clone(s.rows)
	if in.Part == observer.PartKey {
		return slices.DeleteFunc(rows, func(r observer.Row) bool {
			return compareKeys(r.Key, in.Key) != 0 || r.Cursor == "" && dated && !s.Unordered
		})
	}
	if in.Part == observer.PartUndated {
		rows = slices.DeleteFunc(rows, func(r observer.Row) bool { return r.Cursor != "" })
		return byKey(rows, in.Key)
	}
	if in.ByKey {
		rows = slices.DeleteFunc(rows, func(r observer.Row) bool { return r.Cursor == "" && dated && !s.Unordered })
		return byKey(rows, in.Key)
	}
	rows = slices.DeleteFunc(rows, func(r observer.Row) bool {
		return r.Cursor != "" && (r.Cursor < in.From || r.Cursor == in.From && compareKeys(r.Key, in.Key) < 0) || in.Before != "" && (r.Cursor == "" || r.Cursor >= in.Before) ||
			r.Cursor == "" && dated && !s.Unordered
	})
	if !s.Unordered {
		slices.SortStableFunc(rows, func(a, b observer.Row) int {
			return cmp.Or(strings.Compare(a.Cursor, b.Cursor), compareKeys(a.Key, b.Key))
		})
	}
	return limited(rows, in.Limit)
}

func byKey(rows []observer.Row, from string) []observer.Row {
	rows = slices.DeleteFunc(rows, func(r observer.Row) bool { return compareKeys(r.Key, from) < 0 })
	slices.SortStableFunc(rows, func(a, b observer.Row) int { return compareKeys(a.Key, b.Key) })
	return rows
}

func compareKeys(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }

// limited keeps at most that many rows with a cursor; those without come first.
func limited(rows []observer.Row, limit int) []observer.Row {
	first := slices.IndexFunc(rows, func(r observer.Row) bool { return r.Cursor != "" })
	if limit == 0 || first < 0 {
		return rows
	}
	return rows[:min(first+limit, len(rows))]
}

func (s *Source) step(call string) error {
	if s.Step == nil {
		return nil
	}
	return s.Step(call)
}

// AddColumn adds a column of text, NULL in each row, to the table, as its owner may.
func (s *Source) AddColumn(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	member := fmt.Sprintf(",%q:null", name)
	for i := range s.rows {
		s.rows[i].Data = withMembers(s.rows[i].Data, member)
	}
	s.members += member
	s.columns = append(slices.Clip(s.columns), observer.Column{Name: name, Type: "text"})
}

// DropColumn drops a column that AddColumn has added.
func (s *Source) DropColumn(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	member := fmt.Sprintf(",%q:null", name)
	for i := range s.rows {
		s.rows[i].Data = bytes.ReplaceAll(s.rows[i].Data, []byte(member), nil)
	}
	s.members = strings.ReplaceAll(s.members, member, "")
	s.columns = slices.DeleteFunc(slices.Clone(s.columns), func(c observer.Column) bool { return c.Name == name })
}

func withMembers(object []byte, members string) []byte {
	if members == "" {
		return object
	}
	return append(append(slices.Clip(object[:len(object)-1]), members...), '}')
}

// Horizon implements observer.Source: the start of the oldest transaction.
func (s *Source) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	if err := cmp.Or(s.step("horizon"), ctx.Err()); err != nil {
		return observer.Horizon{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.clock
	for tx := range s.open {
		at = min(at, tx.start)
	}
	lag := time.Duration(s.clock-at) * time.Second
	undated := !s.Unordered && q.NullTimestamp != observer.NullSkip &&
		slices.ContainsFunc(s.rows, func(r observer.Row) bool { return r.Cursor == "" })
	return observer.Horizon{Cursor: CursorAt(at), Lag: lag, Exact: true, Clock: CursorAt(s.clock), Now: Time(s.clock), Identity: s.identity, Undated: undated}, nil
}

// Identity implements observer.Source.
func (s *Source) Identity(ctx context.Context) (string, error) {
	if err := cmp.Or(s.step("identity"), ctx.Err()); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.identity, nil
}

// PrimaryKey implements observer.Source.
func (s *Source) PrimaryKey(ctx context.Context, _ observer.Query) ([]string, error) {
	return s.Primary, cmp.Or(s.step("primary key"), ctx.Err())
}

// KeyOrder implements observer.Source.
func (s *Source) KeyOrder(ctx context.Context, _ observer.Query) (string, error) {
	order := ""
	if s.Keyed {
		order = cmp.Or(s.Order, "key")
	}
	return order, cmp.Or(s.step("key order"), ctx.Err())
}

// SetTies sets the order of rows that share a timestamp, in which a read goes on from a
// key: it takes upper and lower case for equal. Empty, as at first, means that none does.
func (s *Source) SetTies(order string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ties = order
}

// CursorAt implements observer.Source.
func (s *Source) CursorAt(ctx context.Context, _ observer.Query, at time.Time) (string, error) {
	return CursorAt(max(0, int64(at.Sub(epoch)/time.Second))), cmp.Or(s.step("cursor at"), ctx.Err())
}

// Read implements observer.Source.
func (s *Source) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	if err := cmp.Or(s.step("read"), ctx.Err()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, in)
	if in.Key != "" && !in.ByKey && in.Part != observer.PartKey && in.Order != s.ties {
		return nil, &observer.Fault{Class: observer.ClassRetry, Err: errors.New("the order of keys has changed")}
	}
	return &rows{ctx: ctx, source: s, columns: s.columns, keys: s.keys, ties: s.ties, left: s.selected(in, q.NullTimestamp == observer.NullSkip || in.Part == observer.PartDated)}, nil
}

// Restate implements observer.Source.
func (s *Source) Restate(cursor, _ string) string { return cursor }

// Compare implements observer.Source.
func (s *Source) Compare(a, b string) int { return strings.Compare(a, b) }

type rows struct {
	ctx    context.Context
	source *Source

	columns []observer.Column
	keys    []observer.KeyColumn
	ties    string
	left    []observer.Row
	row     observer.Row
	buffer  []byte
	err     error
}

// Columns implements observer.Rows.
func (r *rows) Columns() []observer.Column { return r.columns }

// KeyColumns implements observer.Rows.
func (r *rows) KeyColumns() []observer.KeyColumn { return r.keys }

// KeyOrder implements observer.Rows.
func (r *rows) KeyOrder() string { return r.ties }

// Next overwrites the row before, as a driver's buffers do.
func (r *rows) Next() bool {
	r.err = cmp.Or(r.source.step("next"), r.ctx.Err())
	if r.err != nil || len(r.left) == 0 {
		return false
	}
	for i := range r.buffer {
		r.buffer[i] = '#'
	}
	r.row, r.left = r.left[0], r.left[1:]
	r.buffer = append(r.buffer[:0], r.row.Data...)
	if r.row.Key != "" {
		r.row.Key = normal(r.keys, r.row.Key)
	}
	r.row.Data = r.buffer
	return true
}

// normal returns a key of these columns in the normal form.
func normal(columns []observer.KeyColumn, key string) string {
	parts := observer.SplitKey(key, len(columns))
	if len(columns) == 0 || len(parts) != len(columns) {
		return key
	}
	for i, c := range columns {
		parts[i] = string(c.Rule.Normal([]byte(parts[i])))
	}
	return observer.JoinKey(parts)
}

func (r *rows) Row() *observer.Row { return &r.row }
func (r *rows) Err() error         { return r.err }
func (r *rows) Close() error       { return nil }
