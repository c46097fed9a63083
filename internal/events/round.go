package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
)

// round serves each stream that has a backlog with one batch. It reports
// whether anything was stored.
func (t *term) round(ctx context.Context) (busy bool, err error) {
	backlog, err := t.backlog(ctx)
	if err != nil {
		return false, err
	}
	for _, b := range rotate(backlog, t.after) {
		if at, ok := t.halted[b.Stream]; ok && at == b.Acknowledged {
			continue
		}
		t.after = b.Stream
		stored, err := t.serve(ctx, b)
		if stored > 0 {
			busy = true
			t.progressed()
		}
		if err != nil {
			return busy, err
		}
	}
	return busy, nil
}

func (t *term) backlog(ctx context.Context) ([]Backlog, error) {
	t.beat(t.opts.Timeout)
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	backlog, err := t.opts.Log.Backlog(ctx, t.opts.Sink)
	if err != nil {
		return nil, fmt.Errorf("look for undelivered events: %w", err)
	}
	t.showLag(backlog)
	return backlog, nil
}

// showLag keeps the streams that have caught up, or have had no backlog yet, at 0: a
// missing one could not be told from one that no relay reads.
func (t *term) showLag(backlog []Backlog) {
	of := make(map[string]Backlog, len(backlog))
	for _, b := range backlog {
		t.lagged[b.Stream] = true
		t.ahead = time.Until(b.Now)
		of[b.Stream] = b
	}
	ages := make(map[string]time.Duration, len(t.lagged))
	for stream := range t.lagged {
		b := of[stream]
		t.metrics.lag.WithLabelValues(stream).Set(float64(b.Last - b.Acknowledged))
		ages[stream] = b.age()
	}
	t.metrics.waiting.set(ages)
}

// showLatency takes in that the sink has stored these events of one stream.
func (t *term) showLatency(stored []Event) {
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
func rotate(backlog []Backlog, after string) []Backlog {
	for i, b := range backlog {
		if b.Stream > after {
			return append(backlog[i:len(backlog):len(backlog)], backlog[:i]...)
		}
	}
	return backlog
}

// serve delivers one batch of a stream, and reports how much of it the sink
// has stored.
func (t *term) serve(ctx context.Context, b Backlog) (stored int, err error) {
	batch, err := t.read(ctx, b)
	if err != nil {
		return 0, err
	}
	batch = gapless(batch, b.Acknowledged)
	if len(batch) == 0 {
		t.halt(b)
		return 0, nil
	}
	t.resume(b.Stream)
	for after := b.Acknowledged; len(batch) > 0; {
		n, err := t.deliver(ctx, after, batch)
		stored += n
		if err != nil {
			return stored, err
		}
		after, batch = batch[n-1].Seq, batch[n:]
	}
	return stored, nil
}

func (t *term) read(ctx context.Context, b Backlog) ([]Event, error) {
	t.beat(t.opts.Timeout)
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	batch, err := t.opts.Log.Read(ctx, b.Stream, b.Acknowledged, t.opts.BatchSize)
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", b.Stream, err)
	}
	failpoint.Hit("relay.read")
	return batch, nil
}

// gapless returns the events of the batch that follow on acknowledged without a gap. A
// sink that has stored nothing yet begins with the oldest event of the log.
func gapless(batch []Event, acknowledged int64) []Event {
	next := acknowledged + 1
	if acknowledged == 0 && len(batch) > 0 {
		next = batch[0].Seq
	}
	for i := range batch {
		if batch[i].Seq != next {
			return batch[:i]
		}
		next++
	}
	return batch
}

// halt delivers no more of a stream until its offset has moved.
func (t *term) halt(b Backlog) {
	if b.Acknowledged == 0 {
		return // All of the stream has gone with retention; there is nothing to skip.
	}
	t.halted[b.Stream] = b.Acknowledged
	t.metrics.halted.Set(float64(len(t.halted)))
	err := fmt.Errorf("%w: stream %s has nothing at %d, though it reaches to %d",
		ErrGap, b.Stream, b.Acknowledged+1, b.Last)
	t.opts.Logger.Error("Events are missing, stream halted", "stream", b.Stream, "err", err)
}

func (t *term) resume(stream string) {
	if _, ok := t.halted[stream]; !ok {
		return
	}
	delete(t.halted, stream)
	t.metrics.halted.Set(float64(len(t.halted)))
	t.opts.Logger.Info("Stream goes on", "stream", stream)
}

// deliver hands the batch, which was read behind after, to the sink and acknowledges
// what it has stored.
func (t *term) deliver(ctx context.Context, after int64, batch []Event) (stored int, err error) {
	stored, err = t.hand(ctx, batch)
	if stored == 0 {
		return 0, err
	}
	failpoint.Hit("relay.stored")
	t.unsettled = &Stored{After: after, Events: batch[:stored]}
	if settleErr := t.settle(ctx); settleErr != nil {
		return stored, settleErr
	}
	t.metrics.delivered.Add(float64(stored))
	t.showLatency(batch[:stored])
	return stored, err
}

func (t *term) hand(ctx context.Context, batch []Event) (int, error) {
	t.beat(t.opts.Timeout)
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	stored, err := t.sink.Deliver(ctx, batch)
	switch {
	case stored < 0 || stored > len(batch):
		return 0, &sinkError{fmt.Errorf("the sink claims to have stored %d of %d events", stored, len(batch))}
	case err != nil:
		return stored, &sinkError{fmt.Errorf("deliver: %w", err)}
	case stored == 0:
		return 0, &sinkError{errors.New("the sink stored nothing and does not say why")}
	}
	return stored, nil
}

// settle acknowledges what the sink has stored. Shutdown does not interrupt it, since it
// is brief and saves a repetition; a lost lease forbids it. A repeat after a lost answer
// changes nothing, and the epoch keeps a late one from moving the offset of another
// relay. What could not be acknowledged for an error is kept, or each short outage
// would repeat it in the sink.
func (t *term) settle(ctx context.Context) error {
	if t.unsettled == nil {
		return nil
	}
	if t.lost() {
		return context.Cause(ctx)
	}
	t.beat(stopTimeout)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := t.opts.Log.Acknowledge(ctx, t.opts.Sink, *t.unsettled, t.epoch); err != nil {
		return fmt.Errorf("acknowledge events of %s: %w", t.unsettled.Stream(), err)
	}
	t.unsettled = nil
	failpoint.Hit("relay.moved")
	return nil
}
