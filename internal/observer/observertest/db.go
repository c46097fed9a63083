package observertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
)

var (
	// ErrFenced is what a lease's commit returns after another was acquired.
	ErrFenced = errors.New("lease had ended")
	// ErrStale is what a commit returns whose cursor is not the present one.
	ErrStale = errors.New("cursor has moved")
)

// DB is a coordination database in memory. The zero value is not ready; see
// [NewDB].
type DB struct {
	mu      sync.Mutex
	streams map[string]*stream
	sweeps  []observer.Sweep
	fence   int

	// Epoch is that of new streams.
	Epoch int64
	// Clock tells when a definition was set; at first it is the zero time for ever.
	Clock func() time.Time
	// Fenced replaces [ErrFenced], for tests of what knows the real one.
	Fenced error
	// Step is called before each call; its error takes the call's place. Nil
	// means none.
	Step func(call string) error
}

type stream struct {
	cursor observer.Cursor
	// start is the low-water mark of the first commit.
	start    string
	observed map[string]observer.Observed
	events   []events.Event
	dead     []observer.Dead
	refused  []bool // of dead, by its place
	chunks   []observer.Chunk

	generation observer.Generation
}

// NewDB returns an empty database.
func NewDB() *DB {
	return &DB{streams: make(map[string]*stream), Clock: func() time.Time { return time.Time{} }}
}

// Acquire returns a store under a new lease; those before it have ended.
func (db *DB) Acquire() observer.Store {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.fence++
	return &lease{db: db, fence: db.fence}
}

// Events returns the stream's events in order.
func (db *DB) Events(name string) []events.Event {
	return read(db, name, func(s *stream) []events.Event { return slices.Clone(s.events) })
}

// Dead returns the stream's poison rows.
func (db *DB) Dead(name string) []observer.Dead {
	return read(db, name, func(s *stream) []observer.Dead { return slices.Clone(s.dead) })
}

// DropDead removes the records of the stream's poison rows, as an operator may.
func (db *DB) DropDead(name string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.stream(name).dead = nil
}

// Chunks returns the chunks that were committed, in order.
func (db *DB) Chunks(name string) []observer.Chunk {
	return read(db, name, func(s *stream) []observer.Chunk { return slices.Clone(s.chunks) })
}

// Cursor returns the stream's cursor.
func (db *DB) Cursor(name string) observer.Cursor {
	return read(db, name, func(s *stream) observer.Cursor { return s.cursor })
}

// Generation returns how far the stream's reading of all rows has come.
func (db *DB) Generation(name string) observer.Generation {
	return read(db, name, func(s *stream) observer.Generation { return s.generation })
}

// Start returns the low-water mark of the stream's first commit, as
// observer.Start wants it.
func (db *DB) Start(ctx context.Context, name string) (string, error) {
	if err := db.begin(ctx, "start"); err != nil {
		return "", err
	}
	return read(db, name, func(s *stream) string { return s.start }), nil
}

// Accept lets the next poll do what the last one refused, as an operator does.
func (db *DB) Accept(name string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	c := &db.stream(name).cursor
	c.Accepted = c.Refusal
	c.Version++
}

// Live returns the sorted keys of the rows that are not gone.
func (db *DB) Live(name string) []string {
	return read(db, name, func(s *stream) (keys []string) {
		for key, o := range s.observed {
			if !o.Gone {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		return keys
	})
}

func read[T any](db *DB, name string, get func(*stream) T) T {
	db.mu.Lock()
	defer db.mu.Unlock()
	return get(db.stream(name))
}

func (db *DB) stream(name string) *stream {
	s := db.streams[name]
	if s == nil {
		id := int64(len(db.streams) + 1)
		s = &stream{
			cursor:   observer.Cursor{ID: id, Stream: name, Epoch: db.Epoch},
			observed: make(map[string]observer.Observed),
		}
		db.streams[name] = s
	}
	return s
}

// begin is the start of each call of a store.
func (db *DB) begin(ctx context.Context, call string) error {
	if db.Step != nil {
		if err := db.Step(call); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// commit appends what was checked.
func (db *DB) commit(s *stream, ch observer.Chunk) observer.Cursor {
	ch = copyOf(ch)
	for i, e := range ch.Events {
		e.Seq = s.cursor.LastSeq + int64(i) + 1
		s.events = append(s.events, e)
	}
	for _, o := range slices.Concat(ch.New, ch.Changed) {
		s.observed[o.Key] = o
	}
	for _, d := range ch.Dead {
		n := s.find(d)
		if n < 0 {
			n = len(s.dead)
			s.dead, s.refused = append(s.dead, d), append(s.refused, false)
		}
		s.refused[n] = ch.Refused
	}
	s.chunks = append(s.chunks, ch)
	if ch.Generation != nil {
		s.generation = *ch.Generation
		s.generation.Seen = slices.Clone(ch.Generation.Seen)
	}
	if s.cursor.Low == "" && s.cursor.Fingerprint == "" {
		s.start = ch.After.Low
	}
	if ch.After.Definition != s.cursor.Definition {
		ch.After.DefinedAt = db.Clock()
	}
	s.cursor = ch.After
	return s.cursor
}

// copyOf is a chunk that shares nothing with the caller's, which is used again.
func copyOf(ch observer.Chunk) observer.Chunk {
	ch.New, ch.Changed, ch.Events, ch.Dead = slices.Clone(ch.New), slices.Clone(ch.Changed), slices.Clone(ch.Events), slices.Clone(ch.Dead)
	for _, rows := range [][]observer.Observed{ch.New, ch.Changed} {
		for i := range rows {
			rows[i].Hash = slices.Clone(rows[i].Hash)
		}
	}
	for i := range ch.Events {
		ch.Events[i].Data = slices.Clone(ch.Events[i].Data)
	}
	for i := range ch.Dead {
		ch.Dead[i].Raw = slices.Clone(ch.Dead[i].Raw)
	}
	return ch
}

// find is the place of a poison row; negative for one that is not there.
func (s *stream) find(d observer.Dead) int {
	return slices.IndexFunc(s.dead, func(x observer.Dead) bool { return sameDead(x, d) })
}

func sameDead(a, b observer.Dead) bool {
	return a.Key == b.Key && a.Reason == b.Reason && bytes.Equal(a.Raw, b.Raw)
}

// check refuses a chunk that breaks the contract of observer.Chunk.
func (s *stream) check(ch observer.Chunk) error {
	live := s.cursor.Live + int64(len(ch.New))
	anew := make(map[string]bool, len(ch.New))
	for i, o := range ch.New {
		if _, known := s.observed[o.Key]; known || anew[o.Key] {
			return observer.ErrObserved
		}
		anew[o.Key] = true
		if o.Version != 1 || o.Gone {
			return fmt.Errorf("key %q is not new", o.Key)
		}
		if o.Number != s.cursor.Rows+int64(i)+1 {
			return fmt.Errorf("key %q has number %d", o.Key, o.Number)
		}
	}
	for _, o := range ch.Changed {
		old, known := s.observed[o.Key]
		if !known || o.Version != old.Version+1 || o.Number != old.Number || old.Gone && o.Gone {
			return fmt.Errorf("key %q is not the next version", o.Key)
		}
		switch {
		case o.Gone:
			live--
		case old.Gone:
			live++
		}
	}
	return cmp.Or(
		expect("counts", s.countsFollow(ch)),
		expect("live rows", ch.After.Live == live),
		expect("number of events", len(ch.Events) == len(ch.New)+len(ch.Changed)),
		expect("marks", s.marksFollow(ch)),
		expect("generation", ch.Generation == nil || ch.Sweep == nil),
		expect("fingerprint", ch.After.Fingerprint != ""),
		expect("commit id", len(s.chunks) == 0 || ch.CommitID != s.chunks[len(s.chunks)-1].CommitID),
	)
}

// countsFollow says that the cursor counts what the chunk holds, and stays that of the
// stream.
func (s *stream) countsFollow(ch observer.Chunk) bool {
	c, next := s.cursor, ch.After
	return next.ID == c.ID && next.Stream == c.Stream && next.Epoch == c.Epoch && next.DefinedAt.Equal(c.DefinedAt) &&
		next.Version == c.Version+1 && next.LastSeq == c.LastSeq+int64(len(ch.Events)) && next.Rows == c.Rows+int64(len(ch.New))
}

// marksFollow says that the marks go forward, or back together, in a chunk of
// their own; and that a sweep leaves them where they are.
func (s *stream) marksFollow(ch observer.Chunk) bool {
	c, next := s.cursor, ch.After
	switch {
	case ch.Sweep != nil:
		return next.Low == c.Low && next.Newest == c.Newest && next.Marks.RereadAt.Equal(c.Marks.RereadAt)
	case next.Low < c.Low || next.Newest < c.Newest:
		return next.Low <= c.Low && next.Newest == next.Low && len(ch.Events)+len(ch.Dead) == 0
	}
	return next.Low <= next.Newest
}

func expect(what string, ok bool) error {
	if ok {
		return nil
	}
	return fmt.Errorf("chunk breaks the contract: %s", what)
}

// Reset sets a stream back to its beginning, and keeps its rows, as an operator does.
func (db *DB) Reset(name string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	s := db.streams[name]
	c := &s.cursor
	c.Version++
	c.Low, c.Newest, c.Fingerprint, c.Refusal, c.Accepted = "", "", "", "", ""
	c.Marks = c.Marks.Reset(true, false)
	s.generation = observer.Generation{}
}
