package source

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// Result runs the statements of one read, one after the other in one snapshot. ctx
// is that of the stream.
type Result interface {
	// Open runs the n-th statement, from 0.
	Open(ctx context.Context, n int) error
	// Next goes to the next row of the statement. At the end it closes the statement
	// and returns false.
	Next(ctx context.Context) (bool, error)
	// Failed is the error of a stream whose context has ended while no statement was
	// waited for.
	Failed(ctx context.Context, err error) error
	// Close closes the statement that was not read to its end, and gives the connection
	// back.
	Close(ctx context.Context) error
}

// Restarter is a [Result] whose tables other sessions may lock. All statements up to the
// first row run anew then.
type Restarter interface {
	// Begin begins the read, unless it has begun.
	Begin(ctx context.Context) error
	// Leave ends the read, and gives the connection back.
	Leave()
}

// Stream implements [observer.Rows] for every kind of database: it runs the
// statements of a read and watches for the silence of the database.
type Stream struct {
	StreamOptions
	ctx     context.Context
	silence *Silence
	next    int  // statement to run next
	open    bool // a statement runs
	begun   bool // the first row was waited for
	closed  bool
	row     *observer.Row
	err     error
}

// StreamOptions are the parts of a [Stream].
type StreamOptions struct {
	// Selection is what the rows have, and Ties what KeyOrder returns.
	Selection Selection
	Ties      string
	// Statements is how many statements Result runs.
	Statements int
	Result     Result
	// Cells are the values of the present row of Result, and Builder makes a row of
	// them.
	Cells   Cells
	Builder *Builder
	// Waits are those for locked tables, after each of which Restarter begins anew; nil
	// for none.
	Waits     *LockWaits
	Restarter Restarter
}

// NewStream prepares the stream of a read. The database may be silent for no longer
// than limit. The caller must call Close.
func NewStream(ctx context.Context, limit time.Duration, o StreamOptions) *Stream {
	s := &Stream{StreamOptions: o}
	s.ctx, s.silence = WatchSilence(ctx, limit)
	return s
}

// Next implements [observer.Rows].
func (s *Stream) Next() bool {
	if s.err != nil || s.closed {
		return false
	}
	// The drivers notice only when they next wait, which may be much later.
	if s.ctx.Err() != nil {
		s.err = s.Result.Failed(s.ctx, s.ctx.Err())
		return false
	}
	if s.Waits != nil && !s.begun {
		return s.first()
	}
	var more bool
	more, s.err = s.advance()
	return more
}

func (s *Stream) first() (more bool) {
	s.begun = true
	s.err = s.Waits.Retry(s.ctx, func() (err error) {
		s.next, s.open = 0, false
		if err = s.Restarter.Begin(s.ctx); err == nil {
			more, err = s.advance()
		}
		if err != nil && s.Waits.locked(err) {
			s.Restarter.Leave()
		}
		return err
	})
	return more
}

// advance goes to the next row, of this statement or of a later one.
func (s *Stream) advance() (more bool, err error) {
	for s.open || s.next < s.Statements {
		if !s.open {
			if err := s.Start(); err != nil {
				return false, err
			}
		}
		if more, err = s.fetch(); more || err != nil {
			return more, err
		}
	}
	return false, nil
}

// Start runs the next statement. Called before Next, it makes the failure of the first one that
// of the read.
func (s *Stream) Start() error {
	s.silence.Wait()
	defer s.silence.Got()
	err := s.Result.Open(s.ctx, s.next)
	s.open = err == nil
	s.next++
	return err
}

func (s *Stream) fetch() (more bool, err error) {
	s.silence.Wait()
	defer s.silence.Got()
	s.open, err = s.Result.Next(s.ctx)
	if !s.open || err != nil {
		return false, err
	}
	s.row = s.Builder.Row(s.Cells)
	return true, nil
}

// Answered says that the database has answered a call of Result that goes on to wait.
func (s *Stream) Answered() {
	s.silence.Got()
	s.silence.Wait()
}

// Columns implements [observer.Rows].
func (s *Stream) Columns() []observer.Column { return s.Selection.Members() }

// KeyColumns implements [observer.Rows].
func (s *Stream) KeyColumns() []observer.KeyColumn { return s.Selection.KeyColumns() }

// KeyOrder implements [observer.Rows].
func (s *Stream) KeyOrder() string { return s.Ties }

// Row implements [observer.Rows].
func (s *Stream) Row() *observer.Row { return s.row }

// Err implements [observer.Rows].
func (s *Stream) Err() error { return s.err }

// Close implements [observer.Rows].
func (s *Stream) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.silence.Wait()
	err := s.Result.Close(s.ctx)
	s.silence.Got()
	s.silence.Stop()
	if s.err == nil {
		s.err = err
	}
	return nil
}
