package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/internal/wait"
)

// pauseAfter returns the time from the turn of the last failure to the next try: the
// backoff of the type, or the pause of the failure's class if that is longer. Rows
// that a snapshot lacks do not delay the rows that it has.
func pauseAfter(err error, failures int, interval time.Duration) time.Duration {
	if errors.Is(err, observer.ErrMassDisappearance) {
		return 0
	}
	return max(backoff(failures, interval), observer.ClassOf(err).Pause(failures))
}

// Reason returns the text of a failure for the history and for status. A failure
// that the source has classified begins with its class.
func Reason(err error) string {
	if class := observer.ClassOf(err); class != "" {
		return fmt.Sprintf("%s: %v", class, err)
	}
	return err.Error()
}

// Recoverable is an [Observer] that knows whether the cause of its last failure is
// gone, so that it need not wait for the end of its backoff. It is asked only during
// a backoff.
type Recoverable interface {
	Recovered(ctx context.Context) bool
}

// inBackoff reports whether the observer has a backoff to wait for. As for a turn in
// the future, a backoff longer than the longest comes from a clock that has gone back.
func (r *run) inBackoff(ctx context.Context, o Observer, last turn.Stream, now time.Time) bool {
	left := last.RetryAt.Sub(now)
	if left <= 0 || left > max(backoff(last.Failures, r.typ.delay(o.ID())), observer.LongestPause) {
		return false
	}
	recoverable, ok := o.(Recoverable)
	if !ok {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return !recoverable.Recovered(ctx)
}

// The longest backoff of an observer that keeps failing: 20 intervals, or
// 10 minutes if that is less, but never below the interval itself.
const (
	maxBackoffIntervals = 20
	maxBackoff          = 10 * time.Minute
)

// backoff returns the time from the turn of the last failure to the next try: 1, 2,
// 4 … intervals.
func backoff(failures int, interval time.Duration) time.Duration {
	longest := max(interval, min(maxBackoffIntervals*interval, maxBackoff))
	return wait.Doubled(interval, failures-1, longest)
}
