// Package slowsource is a source for tests that reach the time limit of a poll.
package slowsource

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// Source hands over some rows and then hangs until its reader gives up.
type Source struct{ Rows int }

var _ observer.Source = Source{}

// Horizon implements [observer.Source].
func (Source) Horizon(context.Context, observer.Query) (observer.Horizon, error) {
	return observer.Horizon{Cursor: "9"}, nil
}

// PrimaryKey implements [observer.Source].
func (Source) PrimaryKey(context.Context, observer.Query) ([]string, error) { return nil, nil }

// KeyOrder implements [observer.Source].
func (Source) KeyOrder(context.Context, observer.Query) (string, error) { return "", nil }

// Identity implements [observer.Source].
func (Source) Identity(context.Context) (string, error) { return "", nil }

// CursorAt implements [observer.Source].
func (Source) CursorAt(context.Context, observer.Query, time.Time) (string, error) { return "9", nil }

// Read implements [observer.Source].
func (s Source) Read(ctx context.Context, _ observer.Query, _ observer.Range) (observer.Rows, error) {
	return &rows{ctx: ctx, left: s.Rows}, nil
}

// Restate implements [observer.Source].
func (Source) Restate(cursor, _ string) string { return cursor }

// Compare implements [observer.Source].
func (Source) Compare(a, b string) int { return len(a) - len(b) }

type rows struct {
	ctx  context.Context //nolint:containedctx // It is the read's own.
	left int
}

func (*rows) Columns() []observer.Column { return nil }

func (*rows) KeyColumns() []observer.KeyColumn { return nil }

func (*rows) KeyOrder() string { return "" }

func (r *rows) Next() bool {
	if r.left == 0 {
		<-r.ctx.Done()
		return false
	}
	r.left--
	return true
}

func (r *rows) Row() *observer.Row {
	return &observer.Row{Key: "k" + string(rune('0'+r.left)), Cursor: "1", Time: time.Unix(1, 0), Data: []byte(`{}`)}
}

func (r *rows) Err() error { return r.ctx.Err() }

func (*rows) Close() error { return nil }
