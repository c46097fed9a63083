package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

// pauseAfter is the time from the turn of the last failure to the next try: the
// backoff of the type, or what the class of the failure asks for if that is
// more. Rows that a snapshot lacks hold up none of those that it has.
func pauseAfter(err error, failures int, interval time.Duration) time.Duration {
	if errors.Is(err, observer.ErrMassDisappearance) {
		return 0
	}
	return max(backoff(failures, interval), observer.ClassOf(err).Pause(failures))
}

// longestPause is the longest that any failure asks for.
func longestPause(failures int, interval time.Duration) time.Duration {
	longest := backoff(failures, interval)
	for _, class := range []observer.Class{
		observer.ClassUnreachable, observer.ClassResource, observer.ClassKilled, observer.ClassTimeout,
		observer.ClassCredentials, observer.ClassSettings, observer.ClassQuery, observer.ClassData,
		observer.ClassRetry, observer.ClassDriver, observer.ClassUnknown,
	} {
		longest = max(longest, class.Pause(failures))
	}
	return longest
}

// Reason words a failure for the history and for status: what the source has
// classified begins with its class.
func Reason(err error) string {
	if class := observer.ClassOf(err); class != "" {
		return fmt.Sprintf("%s: %v", class, err)
	}
	return err.Error()
}

// Hopeful is an [Observer] that can tell whether what it failed for has
// changed, so that it need not wait for the end of its backoff. It is asked
// only while it waits.
type Hopeful interface {
	Hopeful(ctx context.Context) bool
}

// waits reports whether the observer has a backoff to wait for. Like a turn in
// the future, one that ends later than any could is of a clock that has gone
// back.
func (r *run) waits(ctx context.Context, o Observer, was turn.Stream, now time.Time) bool {
	left := was.RetryAt.Sub(now)
	if left <= 0 || left > longestPause(was.Failures, r.typ.Interval) {
		return false
	}
	hopeful, ok := o.(Hopeful)
	if !ok {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return !hopeful.Hopeful(ctx)
}
