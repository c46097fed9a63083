// Package attempt is what the handlers of package guard, and of its fake, find in their contexts.
package attempt

import "context"

// Attempt is one run of a handler.
type Attempt struct {
	// IdempotencyKey is the same in every attempt of an event.
	IdempotencyKey string
	Fence          int64
}

type key struct{}

// With returns a context that has the attempt.
func With(ctx context.Context, a Attempt) context.Context { return context.WithValue(ctx, key{}, a) }

// Of returns the attempt of a context, and the zero value for one that is no handler's.
func Of(ctx context.Context) Attempt {
	a, _ := ctx.Value(key{}).(Attempt)
	return a
}
