package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/wait"
)

// ErrSilent is the cause of a stream that ended because the database sent
// nothing for longer than the query timeout.
var ErrSilent = errors.New("the database sent nothing within the query timeout")

// ErrTimeout is the cause of a small statement's end that took longer than the
// query timeout.
var ErrTimeout = errors.New("no answer within the query timeout")

// Ended says what was being done when a context ended. A database that was too
// slow for us is a fault of its own; otherwise the cause is the caller's.
func Ended(ctx context.Context, operation string) error {
	cause := context.Cause(ctx)
	err := fmt.Errorf("%s: %w", operation, cause)
	if errors.Is(cause, ErrTimeout) || errors.Is(cause, ErrSilent) {
		return &observer.Fault{Class: observer.ClassTimeout, Err: err}
	}
	return err
}

// silenceTicks is how often a limit is looked at before it has passed.
const silenceTicks = 4

// Silence watches over one stream. It measures only the time in which the
// database is waited for; a consumer may take as long as it likes between two
// rows, so a deadline on the whole would be wrong.
type Silence struct {
	// calls is odd while the database is waited for, and grows with each row:
	// two atomic adds a row, where reading a clock would cost ten times that.
	calls  atomic.Uint64
	cancel context.CancelCauseFunc
	done   sync.WaitGroup
}

// WatchSilence returns a context that ends with [ErrSilent] when the database
// was waited for longer than limit. The caller must call Stop.
func WatchSilence(ctx context.Context, limit time.Duration) (context.Context, *Silence) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &Silence{cancel: cancel}
	s.done.Go(func() { s.watch(ctx, limit) })
	return ctx, s
}

func (s *Silence) watch(ctx context.Context, limit time.Duration) {
	var last uint64
	strikes := 0
	for wait.For(ctx, max(limit/silenceTicks, time.Millisecond)) {
		now := s.calls.Load()
		if now%2 == 0 || now != last {
			last, strikes = now, 0
			continue
		}
		if strikes++; strikes >= silenceTicks {
			s.cancel(ErrSilent)
			return
		}
	}
}

// Wait says that the database is waited for from now on, Got that it answered.
func (s *Silence) Wait() { s.calls.Add(1) }

// Got ends what Wait began.
func (s *Silence) Got() { s.calls.Add(1) }

// Stop ends the watch and its context, and waits for both.
func (s *Silence) Stop() {
	s.cancel(context.Canceled)
	s.done.Wait()
}
