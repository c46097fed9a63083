package observertest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// Source is a table in memory. Its clock is a counter that every statement
// moves, so timestamps are unique unless a test sets them. The zero value is
// not ready; see [NewSource].
type Source struct {
	mu    sync.Mutex
	clock int64
	rows  []observer.Row
	open  map[*Tx]struct{}
	reads []string

	// Unordered says that the table has no timestamp: rows have no cursor and
	// every read returns all of them. It is set before the first row.
	Unordered bool
	// Step is called before each call and each row; its error takes their
	// place. Nil means none.
	Step func(call string) error
}

// NewSource returns an empty table.
func NewSource() *Source { return &Source{open: make(map[*Tx]struct{})} }

// epoch is the instant of cursor 0.
var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// CursorAt is the text of a timestamp.
func CursorAt(clock int64) string { return fmt.Sprintf("%012d", clock) }

// At is a row of that key with data made of the value. A negative clock means
// a NULL timestamp.
func At(key, value string, clock int64) observer.Row {
	r := observer.Row{Key: key, Data: fmt.Appendf(nil, `{"id":%q,"value":%q}`, key, value)}
	if clock >= 0 {
		r.Cursor, r.Time = CursorAt(clock), epoch.Add(time.Duration(clock)*time.Second)
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
	s.rows = append(s.rows, r)
}

// SetClock moves the clock forward to that instant.
func (s *Source) SetClock(clock int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = max(s.clock, clock)
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
	s.rows = slices.DeleteFunc(s.rows, func(r observer.Row) bool { return r.Key == key })
}

// Rows returns the rows that a read from the beginning would return.
func (s *Source) Rows() []observer.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.selected("")
}

// Reads returns where each read began.
func (s *Source) Reads() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reads)
}

// selected returns the rows from a cursor on, those without one first.
func (s *Source) selected(from string) []observer.Row {
	rows := slices.Clone(s.rows)
	rows = slices.DeleteFunc(rows, func(r observer.Row) bool { return r.Cursor != "" && r.Cursor < from })
	if !s.Unordered {
		slices.SortStableFunc(rows, func(a, b observer.Row) int {
			return cmp.Or(strings.Compare(a.Cursor, b.Cursor), strings.Compare(a.Key, b.Key))
		})
	}
	return rows
}

func (s *Source) step(call string) error {
	if s.Step == nil {
		return nil
	}
	return s.Step(call)
}

// Horizon implements observer.Source: the start of the oldest transaction.
func (s *Source) Horizon(ctx context.Context, _ observer.Query) (observer.Horizon, error) {
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
	return observer.Horizon{Cursor: CursorAt(at), Lag: lag, Exact: true}, nil
}

// Read implements observer.Source.
func (s *Source) Read(ctx context.Context, _ observer.Query, from string) (observer.Rows, error) {
	if err := cmp.Or(s.step("read"), ctx.Err()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, from)
	return &rows{ctx: ctx, source: s, left: s.selected(from)}, nil
}

// Compare implements observer.Source.
func (s *Source) Compare(a, b string) int { return strings.Compare(a, b) }

type rows struct {
	ctx    context.Context
	source *Source
	left   []observer.Row
	row    observer.Row
	buffer []byte
	err    error
}

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
	r.row.Data = r.buffer
	return true
}

func (r *rows) Row() *observer.Row { return &r.row }
func (r *rows) Err() error         { return r.err }
func (r *rows) Close() error       { return nil }
