package source

import "context"

type beginnerKey struct{}

// WithBeginner returns a context for the calls of a poll that keeps others of this
// process from beginning; begun lets the next one begin, and may be called more than
// once.
func WithBeginner(ctx context.Context, begun func()) context.Context {
	return context.WithValue(ctx, beginnerKey{}, begun)
}

// Begun says that the poll of that context keeps no other from beginning any more: it
// reads, or waits for something for which it needs no connection.
func Begun(ctx context.Context) {
	if begun, ok := ctx.Value(beginnerKey{}).(func()); ok {
		begun()
	}
}
