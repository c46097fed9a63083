package observer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/observerd/observerd/internal/wait"
)

// errNoRows ends a statement that reads all rows when it hands over none any more.
var errNoRows = errors.New("no row has arrived for as long as poll-timeout")

// ErrPollTime is the cause of the end of a poll that took longer than
// [Spec.PollTime] and committed nothing.
var ErrPollTime = errors.New("the poll took longer than poll-timeout")

// halfLeft is half of the time that ctx leaves, or the second value if it has no end.
func halfLeft(ctx context.Context, without time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline) / 2
	}
	return without
}

// leastLeft is the share of a poll's time that is worth another statement.
const leastLeft = 16

// isLate reports whether a poll which another goes on with had better end.
func (s *Spec) isLate(ctx context.Context) bool {
	return halfLeft(ctx, s.PollTime) < s.PollTime/leastLeft
}

// stepTime is for how long a poll works on a generation before it stores how far it
// has come. What it has not stored when its time is over is done again, so it keeps
// half of the time that is left.
func (s *Spec) stepTime(ctx context.Context) time.Duration {
	return min(s.StatementTime, halfLeft(ctx, s.StatementTime))
}

// limited is a context for what a poll does in so much of its time.
func (s *Spec) limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if s.PollTime == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, ErrPollTime)
}

// whileRowsArrive is a context for a statement that is read to its end, however
// long that takes. It ends when nothing has come of it for the time of a poll.
func (s *Spec) whileRowsArrive(ctx context.Context, arrived *atomic.Int64) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	if s.PollTime > 0 {
		watch.Go(func() { s.watch(ctx, cancel, arrived) })
	}
	return ctx, func() {
		cancel(context.Canceled)
		watch.Wait()
	}
}

// watch ends the context when nothing has arrived between two looks.
func (s *Spec) watch(ctx context.Context, cancel context.CancelCauseFunc, arrived *atomic.Int64) {
	for last, now := int64(-1), arrived.Load(); now != last; last, now = now, arrived.Load() {
		if !wait.For(ctx, s.PollTime) {
			return
		}
	}
	cancel(errNoRows)
}
