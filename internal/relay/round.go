package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/sink"
)

// round serves the streams that have a backlog with one batch after the other, for about
// as long as the relay waits between two looks. It reports whether anything was stored.
func (t *term) round(ctx context.Context) (busy bool, err error) {
	if err := t.lookAtParked(ctx); err != nil {
		return false, err
	}
	p, err := t.plan(ctx)
	if err != nil {
		return false, err
	}
	busy, err = t.feed(ctx, p)
	if settleErr := t.settle(ctx); err == nil {
		err = settleErr
	}
	if err != nil {
		return busy, err
	}
	// Last, so that an event at which the sink fails does not hold up all others.
	retried, err := t.retry(ctx)
	return busy || retried, err
}

// feed delivers what is planned, until the next look is due.
func (t *term) feed(ctx context.Context, p *plan) (busy bool, err error) {
	reading := t.readAhead(ctx, p)
	defer func() { reading.abandon() }()
	for until := time.Now().Add(t.opts.Poll); ; {
		parts, err := reading.wait()
		if err != nil || len(parts) == 0 {
			return busy, err
		}
		reading = nil
		if time.Now().Before(until) {
			reading = t.readAhead(ctx, p)
		}
		moved, err := t.serve(ctx, parts)
		t.adapt(len(parts), err)
		if moved {
			busy = true
			t.progressed()
		}
		if err != nil || reading == nil {
			return busy, err
		}
	}
}

// adapt halves the streams of the next batches when one has failed, which may be for one
// of them alone, and doubles them when all streams got through: the others do.
func (t *term) adapt(streams int, err error) {
	switch {
	case errors.As(err, new(*sinkError)):
		t.streamsAtOnce, t.passed = max(1, streams/2), 0
	case t.passed+streams <= t.backlogged: // Or the one that fails would be met by as many again.
		t.passed += streams
	case t.streamsAtOnce >= t.opts.BatchSize:
		t.streamsAtOnce = 0
	default:
		t.streamsAtOnce, t.passed = 2*t.streamsAtOnce, 0
	}
}

// plan looks which streams have a backlog, and are not halted.
func (t *term) plan(ctx context.Context) (*plan, error) {
	backlog, err := t.backlog(ctx)
	if err != nil || paused(backlog) {
		return &plan{}, err
	}
	moved, err := t.compare(ctx, backlog)
	if err == nil && moved {
		backlog, err = t.backlog(ctx)
	}
	if err != nil {
		return nil, err
	}
	p := &plan{size: t.opts.BatchSize, streams: t.streamsAtOnce}
	for _, b := range rotate(backlog, t.after) {
		switch {
		case t.stays(b.Stream, b.Offset), t.compared != nil && !t.agrees(b):
		case b.Offset > 0 && b.Next != b.Offset+1:
			t.halt(b.Stream, b.Offset, fmt.Errorf("the event log has a gap: it has nothing at %d, though the stream reaches to %d", b.Offset+1, b.Last))
		case b.Next > 0: // Or all of the stream has gone with retention; there is nothing to skip.
			t.try(b.Stream)
			p.queue = append(p.queue, pending{stream: b.Stream, offset: b.Offset, next: b.Next, last: b.Last})
		}
	}
	t.backlogged = len(p.queue)
	return p, nil
}

// paused reports whether the sink is paused: it is left alone.
func paused(backlog []events.Backlog) bool { return len(backlog) > 0 && backlog[0].Paused }

func (t *term) backlog(ctx context.Context) ([]events.Backlog, error) {
	ctx, cancel := t.bounded(ctx, t.opts.Timeout)
	defer cancel()
	backlog, err := t.opts.Log.Backlog(ctx, t.opts.Sink)
	if err != nil {
		return nil, err
	}
	t.showLag(backlog)
	t.metrics.paused.Set(0)
	if paused(backlog) {
		t.metrics.paused.Set(1)
	}
	slices.SortFunc(backlog, func(a, b events.Backlog) int { return strings.Compare(a.Stream, b.Stream) }) // Whatever the database sorts by.
	return backlog, nil
}

// showLag keeps the streams that have caught up, or have had no backlog yet, at 0: a
// missing one could not be told from one that no relay reads.
func (t *term) showLag(backlog []events.Backlog) {
	if len(backlog) == 0 && t.showsNone {
		return
	}
	t.showsNone = len(backlog) == 0
	of := fn.By(backlog, func(b events.Backlog) string { return b.Stream })
	for _, b := range backlog {
		t.lagged[b.Stream] = true
		t.ahead = time.Until(b.Now)
	}
	ages := make(map[string]time.Duration, len(t.lagged))
	for stream := range t.lagged {
		b := of[stream]
		t.metrics.lag.WithLabelValues(stream).Set(float64(b.Last - b.Offset))
		ages[stream] = b.Age()
	}
	t.metrics.waiting.set(ages)
}

// showLatency takes in that the sink has stored these events of one stream.
func (t *term) showLatency(stored []events.Event) {
	stream, known := t.streams[stored[0].Stream]
	if !known || stream.Zone == nil {
		return
	}
	histogram, now := t.metrics.latency.WithLabelValues(stream.Type), time.Now().Add(t.ahead)
	for i := range stored {
		if latency, ok := stored[i].Latency(stream.Zone, now); ok {
			histogram.Observe(latency.Seconds())
		}
	}
}

// rotate returns the streams in order, beginning behind the given one.
func rotate(backlog []events.Backlog, after string) []events.Backlog {
	begin := max(0, slices.IndexFunc(backlog, func(b events.Backlog) bool { return b.Stream > after }))
	return slices.Concat(backlog[begin:], backlog[:begin])
}

// reading is a batch that is read while the sink stores the one before. The plan is its
// own until it is done.
type reading struct {
	cancel context.CancelFunc
	work   sync.WaitGroup
	parts  []part
	err    error
}

func (t *term) readAhead(ctx context.Context, p *plan) *reading {
	ctx, cancel := t.bounded(ctx, t.opts.Timeout)
	r := &reading{cancel: cancel}
	r.work.Go(func() { r.parts, r.err = t.read(ctx, p) })
	return r
}

// wait returns what was read.
func (r *reading) wait() ([]part, error) {
	r.work.Wait()
	r.cancel()
	return r.parts, r.err
}

// abandon ends a reading that nobody waits for; nil is none.
func (r *reading) abandon() {
	if r != nil {
		r.cancel()
		r.work.Wait()
	}
}

// read returns the next batch of the plan; empty when there is none.
func (t *term) read(ctx context.Context, p *plan) ([]part, error) {
	ranges := p.ranges()
	if len(ranges) == 0 {
		return nil, nil
	}
	batch, server, err := t.opts.Log.Read(ctx, ranges, t.opts.BatchBytes)
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", ranges[0].Stream, err)
	}
	failpoint.Hit("relay.read")
	return p.read(batch, server, t.opts.Wanted), nil
}

// serve delivers the parts of a batch until all of it is stored, and acknowledges what is
// stored. It reports whether an offset has moved.
func (t *term) serve(ctx context.Context, parts []part) (moved bool, err error) {
	for parts = t.unhalted(parts); len(parts) > 0; {
		t.after = parts[len(parts)-1].stream()
		n, rest, err := t.deliver(ctx, parts)
		moved = moved || n > 0
		if err != nil {
			return moved, err
		}
		parts = rest
	}
	return moved, nil
}

// deliver hands the sink what comes next of each part, acknowledges what it has stored, and
// returns how many offsets have moved, and what is left of the parts. Streams with an event
// that the sink rejects are halted, or the event is parked.
func (t *term) deliver(ctx context.Context, parts []part) (moved int, rest []part, err error) {
	next, wanted := make([]part, len(parts)), make([][]events.Event, len(parts))
	for i := range parts {
		next[i] = parts[i].next(t.parks)
		wanted[i] = next[i].wanted
	}
	stored, rejected, err := t.offer(ctx, slices.Concat(wanted...), t.sink.Deliver)
	var delivered [][]events.Event
	var full []part
	for i := range parts {
		last := stored[parts[i].stream()]
		done := next[i].stored(last)
		if len(done.parked) > 0 {
			if done = done.fits(t.room(done.parked)); len(done.parked) == 0 {
				full = append(full, parts[i])
				continue
			}
		}
		if len(done.events) > 0 {
			moved++
			t.remember(events.Step{
				After: done.after, Events: done.events, Server: parts[i].server, Stored: last, Parked: t.parkings(done.parked),
			})
		}
		if len(done.wanted) > 0 {
			delivered = append(delivered, done.wanted)
		}
		if left := parts[i].behind(done); len(left.events) > 0 {
			rest = append(rest, left)
		}
	}
	if len(stored) > 0 {
		failpoint.Hit("relay.stored")
	}
	if err == nil && len(rest)+len(full) == 0 && t.settlesLater() {
		t.later++
	} else if settleErr := t.settle(ctx); settleErr != nil {
		if err != nil { // The log's failure is told, and the sink's not forgotten.
			t.endSession()
		}
		return moved, nil, settleErr
	}
	for i := range full { // Behind what lets a stream go on.
		t.halt(full[i].stream(), full[i].after, errFull)
	}
	for _, events := range delivered {
		t.metrics.delivered.Add(float64(len(events)))
		t.showLatency(events)
	}
	return moved, t.refused(rest, rejected), err
}

// refused parks, or halts the streams with, an event that the sink rejects, and returns the
// parts that go on.
func (t *term) refused(rest []part, rejected map[string]*sink.Rejection) (others []part) {
	for _, p := range rest {
		if x := rejected[p.stream()]; x != nil && !t.park(p, x) {
			t.halt(p.stream(), p.after, fmt.Errorf("the sink refuses event %d, %s, for good: %s", x.Seq, x.ID, x.Reason))
			continue
		}
		others = append(others, p)
	}
	return others
}

// offer gives the sink a batch, by its method for events in their order or for late ones, and
// returns what it says of each stream.
func (t *term) offer(ctx context.Context, batch []events.Event, deliver func(context.Context, []events.Event) (sink.Result, error)) (
	map[string]*events.Position, map[string]*sink.Rejection, error,
) {
	if len(batch) == 0 {
		return nil, nil, nil
	}
	ctx, cancel := t.bounded(ctx, t.opts.Timeout)
	defer cancel()
	result, err := deliver(ctx, batch)
	stored, rejected, sound := claims(batch, result)
	switch {
	case !sound:
		return nil, nil, &sinkError{errors.New("the sink claims to have stored, or to reject, events that it was not given")}
	case err != nil:
		return stored, rejected, &sinkError{fmt.Errorf("deliver: %w", err)}
	case len(stored) == 0 && len(rejected) == 0:
		return nil, nil, &sinkError{errors.New("the sink stored nothing and does not say why")}
	}
	return stored, rejected, nil
}

const (
	// mostLater is how many batches wait to be acknowledged with the one behind them, and
	// mostStreamsLater how many streams they may have.
	mostLater, mostStreamsLater = 3, 64
)

// settlesLater reports whether what the sink has stored may be acknowledged with what comes
// next. It knows its positions, so that a crash repeats nothing, and an acknowledgement, which
// is a commit, costs as much as a fifth of a batch.
func (t *term) settlesLater() bool {
	_, resumes := t.sink.(sink.Resumer)
	parks := slices.ContainsFunc(t.unsettled, func(s events.Step) bool { return len(s.Parked) > 0 })
	return resumes && !parks && t.later < mostLater && len(t.unsettled) <= mostStreamsLater
}

// remember takes in a step that the event log does not know yet.
func (t *term) remember(step events.Step) {
	i := -1
	if t.later > 0 { // Or each stream is there once.
		i = slices.IndexFunc(t.unsettled, func(s events.Step) bool { return s.Stream() == step.Stream() })
	}
	if i < 0 {
		t.unsettled = append(t.unsettled, step)
		return
	}
	s := &t.unsettled[i]
	if step.Server != s.Server || step.After != s.Last() {
		s.Server = "" // All events are compared.
	}
	s.Events = slices.Concat(s.Events, step.Events)
	s.Stored, s.Parked = cmp.Or(step.Stored, s.Stored), step.Parked
}

// settle acknowledges what the sink has stored. Shutdown does not interrupt it, since it
// is brief and saves a repetition; a lost lease forbids it. A repeat after a lost answer
// changes nothing, and the epoch keeps a late one from moving the offset of another
// relay. What could not be acknowledged for an error is kept, or each short outage
// would repeat it in the sink.
func (t *term) settle(ctx context.Context) error {
	if len(t.unsettled) == 0 {
		return nil
	}
	if t.lost() {
		return context.Cause(ctx)
	}
	ctx, cancel := t.bounded(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := t.opts.Log.Move(ctx, t.opts.Sink, t.unsettled, t.epoch); err != nil {
		return fmt.Errorf("acknowledge events of %s: %w", t.unsettled[0].Stream(), err)
	}
	for _, step := range t.unsettled {
		t.resume(step.Stream())
		if t.compared != nil {
			t.compared[step.Stream()] = step.Last()
		}
		t.tookIn(step)
	}
	t.unsettled, t.later = nil, 0
	failpoint.Hit("relay.moved")
	return nil
}
