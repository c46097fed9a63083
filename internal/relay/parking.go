package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
)

// mostParked bounds the parked events of a sink: a sink that refuses more refuses all.
const mostParked = 1000

var (
	errFull = fmt.Errorf("%d events of the sink are parked, and no more can be; 'observerd dead list' shows them", mostParked)
	// follows is why an event is parked that the sink was not asked to take.
	follows = "an earlier event of its key is parked"
)

// parked is what the sink has of parked events.
type parked struct {
	keys map[events.Key]parkedKey
	// count is how many there are, or are about to be.
	count int
	// retries says that an operator wants some of them delivered.
	retries bool
	readAt  time.Time
}

// parkedKey is a key whose events are parked, from first to last. What comes before them may
// be delivered once more, where the sink has lost it.
type parkedKey struct {
	first, last int64
	// reason is that of the next one; empty for one that follows another.
	reason string
}

// lookAtParked reads what is parked, each round while something is: an operator has it
// delivered, or drops it. Nobody but this term parks more.
func (t *term) lookAtParked(ctx context.Context) error {
	if len(t.parked.keys) == 0 && time.Since(t.parked.readAt) < comparePace {
		return nil
	}
	ctx, cancel := t.bounded(ctx, t.opts.Timeout)
	defer cancel()
	keys, err := t.opts.Log.Parked(ctx, t.opts.Sink)
	if err != nil {
		return fmt.Errorf("look for parked events: %w", err)
	}
	t.parked = parked{keys: make(map[events.Key]parkedKey, len(keys)), readAt: time.Now()}
	age := time.Duration(0)
	for _, k := range keys {
		t.parked.keys[k.Key] = parkedKey{first: k.First, last: k.Last}
		t.parked.count += k.Events
		t.parked.retries = t.parked.retries || k.Retry && !k.Paused
		age = max(age, k.Now.Sub(k.Oldest))
	}
	t.metrics.parked.Set(float64(t.parked.count))
	t.metrics.parkedFor.Set(age.Seconds())
	return nil
}

// parks reports whether an event is to be parked.
func (t *term) parks(e *events.Event) bool {
	k, ok := t.parked.keys[e.Key()]
	return ok && e.Seq >= k.first
}

// park has a rejected event parked, and later ones of its key, if that is wanted.
func (t *term) park(p part, x *sink.Rejection) bool {
	at := slices.IndexFunc(p.wanted, func(e events.Event) bool { return e.Seq == x.Seq })
	if !t.opts.Park || at < 0 {
		return false
	}
	key := p.wanted[at].Key()
	k, known := t.parked.keys[key]
	if !known || x.Seq < k.first {
		k.first = x.Seq
	}
	k.reason = x.Reason
	t.parked.keys[key] = k
	return true
}

// room is how many of the events may be parked, from the first on. Those that are parked already
// need none.
func (t *term) room(all []events.Event) int {
	left := mostParked - t.parked.count
	for i := range all {
		if all[i].Seq > t.parked.keys[all[i].Key()].last {
			left--
		}
		if left < 0 {
			return i
		}
	}
	return len(all)
}

// parkings says why each of the events is parked, and counts those that are not yet.
func (t *term) parkings(all []events.Event) []events.Parking {
	var parkings []events.Parking
	for i := range all {
		key, seq := all[i].Key(), all[i].Seq
		k := t.parked.keys[key]
		parkings = append(parkings, events.Parking{Seq: seq, Reason: cmp.Or(k.reason, follows)})
		if k.reason = ""; seq > k.last {
			k.last = seq
			t.parked.count++
		}
		t.parked.keys[key] = k
	}
	return parkings
}

// tookIn takes in that the log has parked events of a step.
func (t *term) tookIn(step events.Step) {
	if len(step.Parked) == 0 {
		return
	}
	first := step.Parked[0]
	t.opts.Logger.Warn("Events parked", "stream", step.Stream(), "events", len(step.Parked), "first", first.Seq, "reason", first.Reason)
	t.metrics.parked.Set(float64(t.parked.count))
}

// retry delivers parked events that an operator wants delivered, those of a key in order,
// and reports whether there were any.
func (t *term) retry(ctx context.Context) (busy bool, err error) {
	if !t.parked.retries {
		return false, nil
	}
	batch, err := t.retries(ctx)
	if err != nil || len(batch) == 0 {
		return false, err
	}
	deliver := t.sink.Deliver
	if resumer, ok := t.sink.(sink.Resumer); ok {
		deliver = resumer.Redeliver
	}
	stored, rejected, err := t.offer(ctx, batch, deliver)
	var delivered, refused []events.Event
	for i := range batch {
		last, x := stored[batch[i].Stream], rejected[batch[i].Stream]
		switch {
		case last != nil && batch[i].Seq <= last.Seq:
			delivered = append(delivered, batch[i])
		case x != nil && batch[i].ID == x.ID:
			refused = append(refused, batch[i])
		}
	}
	if err := errors.Join(err, t.settleRetry(ctx, delivered, refused, rejected)); err != nil {
		return true, err
	}
	return true, t.lookAtParked(ctx) // Keys that are not parked any more go on.
}

func (t *term) retries(ctx context.Context) ([]events.Event, error) {
	ctx, cancel := t.bounded(ctx, t.opts.Timeout)
	defer cancel()
	batch, err := t.opts.Log.Retries(ctx, t.opts.Sink, t.opts.BatchSize, t.opts.BatchBytes)
	if err != nil {
		return nil, fmt.Errorf("read parked events: %w", err)
	}
	// What the target holds is not what was stored: it may be another one.
	return slices.DeleteFunc(batch, func(e events.Event) bool { return t.halted[e.Stream].unlike }), nil
}

// settleRetry removes what was delivered, and keeps the keys of what was refused again. As
// for settle, shutdown does not interrupt it.
func (t *term) settleRetry(ctx context.Context, delivered, refused []events.Event, why map[string]*sink.Rejection) error {
	if t.lost() {
		return context.Cause(ctx)
	}
	ctx, cancel := t.bounded(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if len(delivered) > 0 {
		if err := t.opts.Log.Unpark(ctx, t.opts.Sink, delivered, t.epoch); err != nil {
			return fmt.Errorf("remove parked events: %w", err)
		}
		t.metrics.delivered.Add(float64(len(delivered)))
		t.opts.Logger.Info("Parked events delivered", "events", len(delivered))
	}
	for _, e := range refused {
		if err := t.opts.Log.Repark(ctx, t.opts.Sink, e, why[e.Stream].Reason, t.epoch); err != nil {
			return fmt.Errorf("keep parked events: %w", err)
		}
		t.opts.Logger.Warn("Parked event refused again", "stream", e.Stream, "seq", e.Seq, "reason", why[e.Stream].Reason)
	}
	return nil
}
