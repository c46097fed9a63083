package main

import (
	"context"

	"github.com/observerd/observerd/internal/observer"
)

// nowhere is a store that keeps nothing: every row is new, and every commit
// succeeds at once. What a poll into it costs is the reading.
type nowhere struct{}

var _ observer.Store = nowhere{}

// Cursor implements [observer.Store].
func (nowhere) Cursor(_ context.Context, stream string) (observer.Cursor, error) {
	return observer.Cursor{ID: 1, Stream: stream}, nil
}

// Observed implements [observer.Store].
func (nowhere) Observed(_ context.Context, _ observer.Cursor, keys []string) ([]observer.Observed, error) {
	return make([]observer.Observed, len(keys)), nil
}

// Buried implements [observer.Store].
func (nowhere) Buried(_ context.Context, _ observer.Cursor, dead []observer.Dead) ([]observer.Burial, error) {
	return make([]observer.Burial, len(dead)), nil
}

// Live implements [observer.Store].
func (nowhere) Live(context.Context, observer.Cursor, string, func(observer.Observed) error) error {
	return nil
}

// Generation implements [observer.Store].
func (nowhere) Generation(context.Context, observer.Cursor) (observer.Generation, error) {
	return observer.Generation{}, nil
}

// Commit implements [observer.Store].
func (nowhere) Commit(_ context.Context, ch observer.Chunk) (observer.Cursor, error) {
	return ch.After, nil
}
