package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// lacksFile reports whether a source cannot be opened because a file cannot be read:
// that of its URL or password, or one that its URL names, such as a key. It may be
// there later.
func lacksFile(err error) bool {
	var file *fs.PathError
	return errors.Is(err, config.ErrUnread) || errors.As(err, &file)
}

// pending is a source that lacks a file, until a call finds it there. For as long
// it is as one that cannot be reached: another node may have the file.
type pending struct {
	open func() (opened, error)

	mu     sync.Mutex
	src    opened // zero until it could be opened
	closed bool
}

var errClosed = errors.New("the source was closed")

// now returns the source; zero while it could not be opened.
func (p *pending) now() opened {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.src
}

// opened returns the source, and opens it where that was not possible before.
func (p *pending) opened() (source.Database, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, errClosed
	case p.src.Database != nil:
		return p.src.Database, nil
	}
	src, err := p.open()
	switch {
	case lacksFile(err):
		return nil, &observer.Fault{Class: observer.ClassUnreachable, Err: fmt.Errorf("%w: %w", observer.ErrUnreachable, err)}
	case err != nil:
		return nil, &observer.Fault{Class: observer.ClassSettings, Err: err}
	}
	p.src = src
	return src.Database, nil
}

// Close implements [source.Database].
func (p *pending) Close() error {
	p.mu.Lock()
	src := p.src.Database
	p.closed = true
	p.mu.Unlock()
	if src == nil {
		return nil
	}
	return src.Close()
}

// Compare implements [observer.Source]. Before the source is opened, nothing of it
// has been read that could be compared.
func (p *pending) Compare(a, b string) int {
	if src := p.now().Database; src != nil {
		return src.Compare(a, b)
	}
	return strings.Compare(a, b)
}

// Restate implements [observer.Source].
func (p *pending) Restate(cursor, form string) string {
	if src := p.now().Database; src != nil {
		return src.Restate(cursor, form)
	}
	return cursor
}

// Identity implements [observer.Source].
func (p *pending) Identity(ctx context.Context) (string, error) {
	src, err := p.opened()
	if err != nil {
		return "", err
	}
	return src.Identity(ctx)
}

// Horizon implements [observer.Source].
func (p *pending) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	src, err := p.opened()
	if err != nil {
		return observer.Horizon{}, err
	}
	return src.Horizon(ctx, q)
}

// KeyOrder implements [observer.Source].
func (p *pending) KeyOrder(ctx context.Context, q observer.Query) (string, error) {
	src, err := p.opened()
	if err != nil {
		return "", err
	}
	return src.KeyOrder(ctx, q)
}

// CursorAt implements [observer.Source].
func (p *pending) CursorAt(ctx context.Context, q observer.Query, at time.Time) (string, error) {
	src, err := p.opened()
	if err != nil {
		return "", err
	}
	return src.CursorAt(ctx, q, at)
}

// Read implements [observer.Source].
func (p *pending) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	src, err := p.opened()
	if err != nil {
		return nil, err
	}
	return src.Read(ctx, q, in)
}

// Describe implements [source.Database].
func (p *pending) Describe(ctx context.Context, q observer.Query) (source.Description, error) {
	src, err := p.opened()
	if err != nil {
		return source.Description{}, err
	}
	return src.Describe(ctx, q)
}

// SQL implements [source.Database].
func (p *pending) SQL(ctx context.Context, q observer.Query, in observer.Range) (string, error) {
	src, err := p.opened()
	if err != nil {
		return "", err
	}
	return src.SQL(ctx, q, in)
}

// Plan implements [source.Database].
func (p *pending) Plan(ctx context.Context, q observer.Query, in observer.Range) (source.Plan, error) {
	src, err := p.opened()
	if err != nil {
		return source.Plan{}, err
	}
	return src.Plan(ctx, q, in)
}
