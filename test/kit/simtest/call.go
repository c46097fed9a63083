package simtest

import (
	"context"
	"errors"
	"time"
)

// Call passes a call through the wire; what says which of those that may be made
// side by side it is. do is what it does at the other side; it runs at most
// once, as one step, on a context that has not ended.
func Call[T any](ctx context.Context, w *Wire, call, what string, do func(ctx context.Context) (T, error)) (answer T, err error) {
	var none T
	slept := w.Asleep()
	if err := w.Doze(); err != nil {
		return none, err
	}
	f, latency, end := w.begin(ctx, call, what)
	defer func() { end(err) }()
	request := ctx
	if slept && latency%2 == 0 {
		request = context.WithoutCancel(ctx)
	}
	if err := w.wait(request, latency); err != nil {
		return none, err
	}
	answer, err = befall(ctx, request, w, f, do)
	if errors.Is(err, ErrDead) {
		return none, err
	}
	if err := w.Doze(); err != nil {
		return none, err
	}
	return answer, err
}

// Do is [Call] for what returns nothing but an error.
func Do(ctx context.Context, w *Wire, call, what string, do func(ctx context.Context) error) error {
	_, err := Call(ctx, w, call, what, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// befall carries the call out as the fault has it. The request may get through
// although the caller's context has ended; for an answer nobody waits longer.
func befall[T any](ctx, request context.Context, w *Wire, f Fault, do func(ctx context.Context) (T, error)) (T, error) {
	var none T
	detached := context.WithoutCancel(ctx)
	switch f.Kind {
	case Refused:
		return none, ErrFault
	case Hung:
		return none, w.wait(ctx, forever)
	case Slow:
		if err := w.wait(request, f.Delay); err != nil {
			return none, err
		}
	case Deaf:
		if err := w.wait(detached, f.Delay); err != nil {
			return none, err
		}
	case Orphaned:
		w.orphans.Go(func() {
			<-time.After(f.Delay)
			_, _ = do(detached)
		})
		return none, ErrFault
	}
	answer, err := do(detached)
	switch f.Kind {
	case Late:
		if err := w.wait(detached, f.Delay); err != nil {
			return none, err
		}
	case Lost:
		return none, ErrFault
	case Unanswered:
		return none, w.wait(ctx, forever)
	}
	return answer, err
}

// forever is longer than any history.
const forever = 365 * 24 * time.Hour

// wait lets time pass; the error says what cut it short.
func (w *Wire) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return w.alive()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.life.Done():
		return ErrDead
	}
}

func (w *Wire) alive() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return ErrDead
	}
	return nil
}
