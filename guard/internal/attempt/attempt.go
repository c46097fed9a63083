// Package attempt is what the handlers of package guard, and of its fake, find in their contexts.
package attempt

import (
	"context"
	"slices"
)

// Attempt is one run of a handler.
type Attempt struct {
	// IdempotencyKey is the same in every attempt of an event.
	IdempotencyKey string
	Fence          int64
	within         []string // the keys of this attempt and of those around it
}

type key struct{}

// With returns a context that has the attempt, inside those of ctx.
func With(ctx context.Context, a Attempt) context.Context {
	a.within = append(slices.Clip(Of(ctx).within), a.IdempotencyKey)
	return context.WithValue(ctx, key{}, a)
}

// Within reports whether the context is that of an attempt with this key, or of one inside it.
func Within(ctx context.Context, idempotencyKey string) bool {
	return slices.Contains(Of(ctx).within, idempotencyKey)
}

// Of returns the attempt of a context, and the zero value for one that is no handler's.
func Of(ctx context.Context) Attempt {
	a, _ := ctx.Value(key{}).(Attempt)
	return a
}
