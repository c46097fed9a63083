package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/wait"
)

// ParkedEvent is an event that a sink has refused, see package lockdb.
type ParkedEvent = lockdb.ParkedEvent

// ParkedFilter says which parked events are meant, see package lockdb.
type ParkedFilter = lockdb.ParkedFilter

// Parked returns parked events, sink by sink, stream by stream, in their order, and the
// database's clock.
func (op *Operator) Parked(ctx context.Context, f ParkedFilter) ([]ParkedEvent, time.Time, error) {
	if err := op.ready(ctx); err != nil {
		return nil, time.Time{}, err
	}
	found, err := op.db.Operations().Parked(ctx, f)
	if err != nil {
		return nil, time.Time{}, err
	}
	now, err := op.db.Now(ctx)
	return found, now, err
}

// DropParked removes parked events of one sink, and returns how many there were.
func (op *Operator) DropParked(ctx context.Context, all []ParkedEvent, by By) (int64, error) {
	return op.db.Operations().DropParked(ctx, numbersOf(all), parkedAct(by, "drop-parked", all))
}

// The outcomes of a retry of a parked event. One that waits is delivered as soon as the relay
// of its sink can.
const (
	RetryDelivered RetryOutcome = "delivered"
	RetryRefused   RetryOutcome = "refused"
	RetryWaits     RetryOutcome = "waits"
)

// RetriedEvent is what has become of a parked event.
type RetriedEvent struct {
	ParkedEvent
	Outcome RetryOutcome
}

// retryWait is how long a retry waits for the relay.
const retryWait = 30 * time.Second

// RetryParked has the relay of their sink deliver parked events, and what is parked of their
// keys, and waits a while for it.
func (op *Operator) RetryParked(ctx context.Context, all []ParkedEvent, by By) ([]RetriedEvent, error) {
	if err := op.onSink(ctx, all[0].Sink); err != nil {
		return nil, err
	}
	if _, err := op.db.Operations().RetryParked(ctx, numbersOf(all), parkedAct(by, "retry-parked", all)); err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		left, err := op.db.Operations().Parked(ctx, ParkedFilter{Numbers: numbersOf(all)})
		if err != nil {
			return nil, err
		}
		waits := slices.ContainsFunc(left, func(p ParkedEvent) bool { return p.Retry })
		if !waits || time.Since(began) >= retryWait || !wait.For(ctx, lookAgain) {
			return retried(all, left), nil
		}
	}
}

func retried(all, left []ParkedEvent) []RetriedEvent {
	done := make([]RetriedEvent, len(all))
	for i, p := range all {
		done[i] = RetriedEvent{p, RetryDelivered}
		if at := slices.IndexFunc(left, func(l ParkedEvent) bool { return l.Number == p.Number }); at >= 0 {
			done[i] = RetriedEvent{left[at], RetryRefused}
			if left[at].Retry {
				done[i].Outcome = RetryWaits
			}
		}
	}
	return done
}

func parkedAct(by By, action string, all []ParkedEvent) lockdb.Act {
	return lockdb.Did(by, action, all[0].Sink, named(all, func(p ParkedEvent) string { return fmt.Sprint("p", p.Number) }))
}

func numbersOf(all []ParkedEvent) []int64 {
	return fn.Each(all, func(p ParkedEvent) int64 { return p.Number })
}
