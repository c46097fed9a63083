package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/internal/wait"
)

// Timing says in which turns of its type an observer is polled. The zero value: in all.
type Timing struct {
	// Delay is the time between the starts of two polls, a multiple of the type's
	// Interval; 0 is the Interval.
	Delay time.Duration
	// NotBetween is a time of day in which no poll begins, beside that of the type.
	// Nil: none.
	NotBetween Window
}

// Window is a time of day that comes each day; config.Window is one.
type Window interface {
	// Until reports whether the time is in the window, and when that ends.
	Until(now time.Time) (end time.Time, within bool)
}

// errNotNow is the reason for which a node skips a turn of a type that is not polled at
// this time of day.
var errNotNow = errors.New("not at this time of day")

// within reports whether the time is in the window, and when that ends.
func within(w Window, now time.Time) (end time.Time, yes bool) {
	if w == nil {
		return now, false
	}
	return w.Until(now)
}

// delay returns the time between the starts of two polls of the observer.
func (t Type) delay(observer string) time.Duration {
	return max(t.Interval, t.Timings[observer].Delay)
}

// suspended reports whether no poll of the observer begins at that time of day.
func (t Type) suspended(observer string, now time.Time) bool {
	_, ofType := within(t.NotBetween, now)
	_, own := within(t.Timings[observer].NotBetween, now)
	return ofType || own
}

// tooSoon reports whether an observer with a delay of its own leaves out the turn of that
// tick, because the delay has not passed since the last turn that it had. Both are ticks,
// so what comes late adds up to nothing. Half an interval less is enough: where the
// interval was changed, the ticks are others. An observer that owes rows has all turns,
// and one that failed those after its backoff.
func (t Type) tooSoon(last turn.Stream, observer string, at time.Time) bool {
	delay := t.delay(observer)
	failing := last.Failures > 0 && last.RetryAt.After(last.At)
	return delay > t.Interval && !last.Unread && !failing && at.Sub(last.At) < delay-t.Interval/2
}

// now returns the database's clock, as this node knows it; the job may have come a
// moment before its tick.
func (r *run) now() time.Time { return fn.Later(r.at, r.clock.now()) }

// waitForWindow waits until the type may be polled, if that is before its next tick, so
// that a type whose ticks all lie in its window is polled after it. The error is
// errNotNow.
func (r *run) waitForWindow(ctx context.Context) error {
	for {
		end, yes := within(r.typ.NotBetween, r.now())
		if !yes {
			return nil
		}
		left := end.Sub(r.clock.now())
		if left > r.timeLeft() || !wait.For(ctx, left) {
			return errNotNow
		}
	}
}

// NextPoll returns when the observer is polled next, if a node is free to do so: at a tick,
// or when the type's window ends. last is its state as stored, zero for an observer that was
// never polled; a pause is not looked at.
func NextPoll(typ Type, observer string, last turn.Stream, now time.Time) time.Time {
	earliest := now
	if typ.tooSoon(last, observer, now) {
		earliest = fn.Later(now, last.At.Add(typ.delay(observer)-typ.Interval/2))
	}
	earliest = fn.Later(earliest, last.RetryAt)
	n := typ.serves(earliest)
	if !last.At.Before(tick(n, typ.Interval)) {
		n++ // It has had this turn.
	}
	for {
		begins, _ := within(typ.NotBetween, fn.Later(earliest, typ.due(n)))
		end, suspended := within(typ.Timings[observer].NotBetween, begins)
		switch {
		case suspended:
			n = max(n+1, typ.serves(end))
		case !begins.Before(typ.due(n + 1)):
			n++
		case typ.tooSoon(last, observer, tick(n, typ.Interval)):
			n++
		default:
			return begins
		}
	}
}
