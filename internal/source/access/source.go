package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// ErrMissingFile is what an error is, for [errors.Is], when a source cannot be opened
// because a file cannot be read: that of its URL or password, or one that its URL
// names, such as a key. It may be there later.
var ErrMissingFile = errors.New("a file of the source cannot be read")

var errClosed = errors.New("the source was closed")

// Source is a source behind the breaker of its database, with its failures counted.
// One that lacks a file is opened by the first call that finds it there; until then it
// is as one that cannot be reached: another node may have the file. [Opener] makes it.
type Source struct {
	name    string
	breaker breaker
	metrics *Metrics // nil counts nothing
	// beginners are the polls of the scheduler; nil where there is none.
	beginners *beginners

	mu     sync.Mutex
	opened opened                 // zero until it could be opened
	find   func() (opened, error) // opens it
	closed bool
}

// opened is a source that could be opened.
type opened struct {
	source.Database
	target Target
	gate   *credentialGate // nil for a source without accounts
}

var _ source.Database = (*Source)(nil)

// current returns the source; zero while it could not be opened.
func (s *Source) current() opened {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// open opens the source where that was not possible before.
func (s *Source) open() (opened, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return opened{}, errClosed
	case s.opened.Database != nil:
		return s.opened, nil
	}
	found, err := s.find()
	switch {
	case errors.Is(err, ErrMissingFile):
		return opened{}, &observer.Fault{Class: observer.ClassUnreachable, Err: fmt.Errorf("%w: %w", observer.ErrUnreachable, err)}
	case err != nil:
		return opened{}, &observer.Fault{Class: observer.ClassSettings, Err: err}
	}
	s.opened = found
	return found, nil
}

// Close implements [source.Database].
func (s *Source) Close() error {
	s.mu.Lock()
	src := s.opened.Database
	s.closed = true
	s.mu.Unlock()
	if src == nil {
		return nil
	}
	return src.Close()
}

// Target returns what the source is by the configuration. One that lacks a file is
// tried first, as by every other call.
func (s *Source) Target(ctx context.Context) (Target, error) {
	if src := s.current(); src.Database != nil {
		return src.target, nil
	}
	_, err := try(s, func(source.Database) (any, error) { return nil, nil })
	return s.current().target, err
}

// HasGoodAccount reports whether the source logs on with an account that is not
// refused, as far as this node or the coordination database knows: it tries no logon.
func (s *Source) HasGoodAccount(ctx context.Context) bool {
	g := s.current().gate
	return g != nil && g.Refusal(ctx) == nil
}

// Begin waits until a poll of this source may begin. The calls of the poll have the
// context that it returns, and end is called when the poll has ended. The error is the
// cause of the end of ctx. The source is one of [Opener.OpenForPolls].
func (s *Source) Begin(ctx context.Context) (begun context.Context, end func(), err error) {
	return s.beginners.enter(ctx)
}

// Compare implements [observer.Source]. Before the source is opened, nothing of it
// has been read that could be compared.
func (s *Source) Compare(a, b string) int {
	if src := s.current(); src.Database != nil {
		return src.Compare(a, b)
	}
	return strings.Compare(a, b)
}

// Restate implements [observer.Source].
func (s *Source) Restate(cursor, form string) string {
	if src := s.current(); src.Database != nil {
		return src.Restate(cursor, form)
	}
	return cursor
}

// PrimaryKey implements [observer.Source].
func (s *Source) PrimaryKey(ctx context.Context, q observer.Query) ([]string, error) {
	return try(s, func(src source.Database) ([]string, error) { return src.PrimaryKey(ctx, q) })
}

// Identity implements [observer.Source].
func (s *Source) Identity(ctx context.Context) (string, error) {
	return try(s, func(src source.Database) (string, error) { return src.Identity(ctx) })
}

// Horizon implements [observer.Source].
func (s *Source) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	return try(s, func(src source.Database) (observer.Horizon, error) { return src.Horizon(ctx, q) })
}

// KeyOrder implements [observer.Source].
func (s *Source) KeyOrder(ctx context.Context, q observer.Query) (string, error) {
	return try(s, func(src source.Database) (string, error) { return src.KeyOrder(ctx, q) })
}

// CursorAt implements [observer.Source].
func (s *Source) CursorAt(ctx context.Context, q observer.Query, at time.Time) (string, error) {
	return try(s, func(src source.Database) (string, error) { return src.CursorAt(ctx, q, at) })
}

// Read implements [observer.Source].
func (s *Source) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	rows, err := try(s, func(src source.Database) (observer.Rows, error) { return src.Read(ctx, q, in) })
	if err != nil {
		return nil, err
	}
	source.Begun(ctx)
	return &recordedRows{Rows: rows, source: s}, nil
}

// Tables implements [source.Database].
func (s *Source) Tables(ctx context.Context, limit int) ([]source.Table, error) {
	return try(s, func(src source.Database) ([]source.Table, error) { return src.Tables(ctx, limit) })
}

// Sample implements [source.Database].
func (s *Source) Sample(ctx context.Context, t *source.Table) error {
	_, err := try(s, func(src source.Database) (any, error) { return nil, src.Sample(ctx, t) })
	return err
}

// Describe implements [source.Database].
func (s *Source) Describe(ctx context.Context, q observer.Query) (source.Description, error) {
	return try(s, func(src source.Database) (source.Description, error) { return src.Describe(ctx, q) })
}

// SQL implements [source.Database].
func (s *Source) SQL(ctx context.Context, q observer.Query, in observer.Range) (source.SQL, error) {
	return try(s, func(src source.Database) (source.SQL, error) { return src.SQL(ctx, q, in) })
}

// Plan implements [source.Database].
func (s *Source) Plan(ctx context.Context, q observer.Query, in observer.Range) (source.Plan, error) {
	return try(s, func(src source.Database) (source.Plan, error) { return src.Plan(ctx, q, in) })
}

// try calls the source, unless its breaker is open.
func try[T any](s *Source, do func(source.Database) (T, error)) (found T, err error) {
	if err := s.breaker.allow(); err != nil {
		return found, err
	}
	src, err := s.open()
	if err == nil {
		found, err = do(src.Database)
	}
	s.record(err)
	return found, err
}

// record keeps the books of a call that has ended. An error without a class is
// that of the caller, such as the end of a context, and says nothing of the source.
func (s *Source) record(err error) {
	class := observer.ClassOf(err)
	if err != nil && class == "" {
		return
	}
	switch class {
	case "":
		s.breaker.succeeded()
	case observer.ClassUnreachable:
		s.breaker.failed(err)
	}
	s.metrics.record(s.name, class, !NoSession(class))
}

// NoSession reports whether a failure of that class means that there was no
// session at all.
func NoSession(class observer.Class) bool {
	return class == observer.ClassUnreachable || class == observer.ClassCredentials || class == observer.ClassSettings
}

// recordedRows notice a source that fails while it is read.
type recordedRows struct {
	observer.Rows
	source   *Source
	recorded bool
}

// Err implements [observer.Rows].
func (r *recordedRows) Err() error {
	err := r.Rows.Err()
	if err != nil && !r.recorded {
		r.recorded = true
		r.source.record(err)
	}
	return err
}
