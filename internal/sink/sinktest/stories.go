package sinktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
)

func whole(ctx context.Context, h Harness) error {
	orders, stock := h.shapes(), Batch("stock", 1, 2)
	return errors.Join(h.term(ctx, func(s sink.Sink) error {
		return deliver(ctx, s, orders[:3], stock, orders[3:])
	}), h.exactly(orders, stock))
}

// mixed has the events of two streams between each other, and one of the streams end first.
func mixed(ctx context.Context, h Harness) error {
	orders, stock := Batch("orders", 1, 9), Batch("stock", 1, 4)
	return errors.Join(h.term(ctx, func(s sink.Sink) error {
		return deliver(ctx, s, mix(orders[:6], stock[:2]), mix(orders[6:], stock[2:]))
	}), h.exactly(orders, stock))
}

// mix returns the events of two streams in turn.
func mix(a, b []events.Event) (batch []events.Event) {
	for i := range max(len(a), len(b)) {
		batch = append(batch, a[min(i, len(a)):min(i+1, len(a))]...)
		batch = append(batch, b[min(i, len(b)):min(i+1, len(b))]...)
	}
	return batch
}

// shapes are events of one stream, each of which is hard to store in its own way.
func (h Harness) shapes() []events.Event {
	batch := Batch("a stream/of \"orders\"", 1, 6)
	batch[0].Data = []byte("{\n  \"note\": \"two\\nlines, \u2028 and ü\"\r\n}")
	batch[1].Subject = "east/4711/" + strings.Repeat("x", 4<<10)
	batch[2].Time = time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.FixedZone("", 3600))
	batch[3].Change, batch[3].Version = events.ChangeGone, 7
	batch[4].Data = nil
	batch[5].Data = []byte(`{"z":"\u0000","a":1.50,"a":2}`)
	if !h.JSON {
		batch[5].Data = []byte("no JSON: \x00\xff\n")
	}
	return batch
}

func large(ctx context.Context, h Harness) error {
	batch := Batch("orders", 1, 5)
	for i := range batch {
		batch[i].Data = fmt.Appendf(nil, `{"note":"%s"}`, strings.Repeat("x", 300<<10))
	}
	return errors.Join(h.term(ctx, func(s sink.Sink) error { return deliver(ctx, s, batch) }), h.exactly(batch))
}

func repeated(ctx context.Context, h Harness) error {
	orders, stock := Batch("orders", 1, 7), Batch("stock", 1, 5)
	return errors.Join(h.term(ctx, func(s sink.Sink) error {
		return deliver(ctx, s, orders[:5], orders[:5], stock, orders[3:])
	}), h.holds(orders, stock))
}

func reopened(ctx context.Context, h Harness) error {
	orders, stock := Batch("orders", 1, 8), Batch("stock", 1, 5)
	err := h.term(ctx, func(s sink.Sink) error { return deliver(ctx, s, orders[:5], stock[:3]) })
	if err = errors.Join(err, h.exactly(orders[:5], stock[:3])); err != nil {
		return fmt.Errorf("after the first term: %w", err)
	}
	return errors.Join(h.term(ctx, func(s sink.Sink) error {
		return deliver(ctx, s, orders, stock[2:])
	}), h.holds(orders, stock))
}

// countedAnew has sequences begin at 1 again, as they do when the coordination
// database was made anew.
func countedAnew(ctx context.Context, h Harness) error {
	old, anew := Batch("orders", 1, 5), Batch("orders", 1, 2)
	for i := range anew {
		anew[i].ID = events.NewID("orders", 0, "another key", anew[i].Seq, nil)
	}
	for _, batch := range [][]events.Event{old, anew} {
		if err := h.term(ctx, func(s sink.Sink) error { return deliver(ctx, s, batch) }); err != nil {
			return err
		}
	}
	return h.exactly(append(old, anew...))
}

func torn(ctx context.Context, h Harness) error {
	orders := Batch("orders", 1, 3)
	return errors.Join(h.term(ctx, func(s sink.Sink) error {
		rest, err := h.tear(ctx, s, orders)
		if err != nil {
			return err
		}
		return h.again(ctx, s, rest, Batch("orders", 4, 4))
	}), h.holds(append(orders, Batch("orders", 4, 4)...)))
}

func tornAndReopened(ctx context.Context, h Harness) error {
	orders := Batch("orders", 1, 3)
	var rest []events.Event
	err := h.term(ctx, func(s sink.Sink) (err error) {
		rest, err = h.tear(ctx, s, orders)
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(h.term(ctx, func(s sink.Sink) error {
		return deliver(ctx, s, rest)
	}), h.holds(orders))
}

func tornBeforeAnother(ctx context.Context, h Harness) error {
	orders, stock := Batch("orders", 1, 3), Batch("stock", 1, 2)
	return errors.Join(h.term(ctx, func(s sink.Sink) error {
		rest, err := h.tear(ctx, s, orders)
		if err != nil {
			return err
		}
		return h.again(ctx, s, stock, rest)
	}), h.holds(orders, stock))
}

// tear delivers a batch that is broken off, and returns what the sink does not say is
// stored. The destination must hold the rest.
func (h Harness) tear(ctx context.Context, s sink.Sink, batch []events.Event) (rest []events.Event, err error) {
	h.Tear()
	if rest, err = fail(ctx, s, batch, nil); err != nil {
		return nil, err
	}
	stored, err := h.Stored()
	if err != nil {
		return nil, err
	}
	if n := len(batch) - len(rest); len(stored) < n {
		return nil, fmt.Errorf("a torn batch has %d stored events, and the destination holds %d", n, len(stored))
	}
	return rest, nil
}

// again delivers behind a failure: a sink with positions is closed, and opened anew, as a
// relay does.
func (h Harness) again(ctx context.Context, s sink.Sink, batches ...[]events.Event) error {
	if !h.Resumes {
		return deliver(ctx, s, batches...)
	}
	return errors.Join(s.Close(), h.in(ctx, term(1), func(s sink.Sink) error { return deliver(ctx, s, batches...) }))
}

func refused(ctx context.Context, h Harness) error {
	orders := Batch("orders", 1, 3)
	return errors.Join(h.term(ctx, func(s sink.Sink) error {
		allow := h.Refuse()
		for range 2 {
			rest, err := fail(ctx, s, orders, nil)
			if n := len(orders) - len(rest); err == nil && n > 0 {
				err = fmt.Errorf("%d events are called stored that were refused", n)
			}
			if err != nil {
				allow()
				return err
			}
		}
		allow()
		return h.again(ctx, s, orders)
	}), h.exactly(orders))
}

var errOver = errors.New("the lease is over")

func ended(ctx context.Context, h Harness) error {
	orders := Batch("orders", 1, 3)
	return errors.Join(h.term(ctx, func(s sink.Sink) error {
		over, cancel := context.WithCancelCause(ctx)
		cancel(errOver)
		rest, err := fail(over, s, orders, errOver)
		if n := len(orders) - len(rest); err == nil && n > 0 {
			err = fmt.Errorf("%d events were stored after the context had ended", n)
		}
		if err = errors.Join(err, h.exactly()); err != nil {
			return err
		}
		return h.again(ctx, s, orders)
	}), h.exactly(orders))
}

// patience is how long Deliver may take when its context has ended.
const patience = 30 * time.Second

// stalled lets the batches of two streams run into their deadlines, and delivers them
// again in another order.
func stalled(ctx context.Context, h Harness) error {
	orders, stock := Batch("orders", 1, 3), Batch("stock", 1, 2)
	return errors.Join(h.term(ctx, func(s sink.Sink) error {
		resume := h.Stall()
		for _, batch := range [][]events.Event{orders, stock, orders} {
			if err := runOut(ctx, s, batch, resume); err != nil {
				return err
			}
		}
		resume()
		select { // A write that the sink has abandoned arrives now.
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
		return h.again(ctx, s, stock, orders)
	}), h.holds(orders, stock))
}

// runOut delivers a batch within a short time, in which the destination stands still.
// It calls resume before it returns an error.
func runOut(ctx context.Context, s sink.Sink, batch []events.Event, resume func()) error {
	brief, cancel := context.WithTimeoutCause(ctx, 20*time.Millisecond, errOver)
	defer cancel()
	answer := make(chan error, 1)
	go func() {
		rest, err := fail(brief, s, batch, errOver)
		if n := len(batch) - len(rest); err == nil && n > 0 {
			err = fmt.Errorf("%d events are called stored that the destination did not take", n)
		}
		answer <- err
	}()
	select {
	case err := <-answer:
		if err != nil {
			resume()
		}
		return err
	case <-time.After(patience):
		resume()
		// The story owns the call, and must not leave it behind.
		return errors.Join(fmt.Errorf("Deliver went on for %v after its context had ended", patience), <-answer)
	}
}

func rejected(ctx context.Context, h Harness) error {
	orders, stock := Batch("orders", 1, 5), Batch("stock", 1, 3)
	h.Poison(&orders[2])
	return errors.Join(h.term(ctx, func(s sink.Sink) error {
		for batch := mix(orders, stock); ; {
			rest, rejections, err := attempt(ctx, s, batch)
			switch {
			case err != nil:
				return err
			case len(rejections) > 1 || len(rejections) == 1 && rejections[0].ID != orders[2].ID:
				return fmt.Errorf("rejected %v, want the event %s", rejections, orders[2].ID)
			case len(rest) == 3:
				return nil // The event and those behind it, in its stream.
			case len(rest) == len(batch):
				return fmt.Errorf("%d events are left, want those from %s on", len(rest), orders[2].ID)
			}
			batch = rest
		}
	}), h.exactly(orders[:2], stock))
}

// wantPositions asks a sink in the next term what it has stored last.
func (h Harness) wantPositions(ctx context.Context, t sink.Term, want map[string]events.Position) error {
	return h.in(ctx, t, func(s sink.Sink) error {
		found, err := positions(ctx, s, "orders", "stock", "no such stream")
		if err != nil {
			return err
		}
		if !maps.Equal(found, want) {
			return fmt.Errorf("the positions are %v, want %v", found, want)
		}
		return nil
	})
}

func positioned(ctx context.Context, h Harness) error {
	orders, stock := Batch("orders", 1, 7), Batch("stock", 1, 3)
	if err := h.wantPositions(ctx, term(1), nil); err != nil {
		return fmt.Errorf("before the first event: %w", err)
	}
	var at map[string]events.Position
	err := h.in(ctx, term(2), func(s sink.Sink) (err error) {
		at, err = deliverAt(ctx, s, theLog, nil, mix(orders[:5], stock), orders[5:])
		return err
	})
	return errors.Join(err, h.wantPositions(ctx, term(3), at), h.exactly(orders, stock))
}

// tornPosition breaks a batch off: afterwards the position is that of what is there.
func tornPosition(ctx context.Context, h Harness) error {
	orders := Batch("orders", 1, 5)
	err := h.term(ctx, func(s sink.Sink) error {
		if err := deliver(ctx, s, orders[:2]); err != nil {
			return err
		}
		_, err := h.tear(ctx, s, orders[2:])
		return err
	})
	if err != nil {
		return err
	}
	var found map[string]events.Position
	err = h.in(ctx, term(2), func(s sink.Sink) (err error) {
		found, err = positions(ctx, s, "orders")
		return err
	})
	if err != nil {
		return err
	}
	last := found["orders"].Seq
	if last < 2 || last > 5 {
		return fmt.Errorf("the position is %d, and 2 of 5 events were stored", last)
	}
	if err := h.exactly(orders[:last]); err != nil {
		return fmt.Errorf("at the position %d: %w", last, err)
	}
	return errors.Join(h.in(ctx, term(3), func(s sink.Sink) error { return deliver(ctx, s, orders[last:]) }), h.exactly(orders))
}

// anotherLog stores events of a log, and then those of one that was made anew.
func anotherLog(ctx context.Context, h Harness) error {
	other := uuid.UUID{6: 0x80, 8: 0x80, 15: 2}
	orders, anew := Batch("orders", 1, 3), Batch("orders", 1, 1)
	anew[0].ID = events.NewID("orders", 0, "another key", 1, nil)
	var at map[string]events.Position
	err := h.term(ctx, func(s sink.Sink) (err error) {
		at, err = deliverAt(ctx, s, theLog, nil, orders)
		return err
	})
	err = errors.Join(err, h.wantPositions(ctx, sink.Term{Log: other, Epoch: 2}, at))
	err = errors.Join(err, h.in(ctx, sink.Term{Log: other, Epoch: 3}, func(s sink.Sink) (err error) {
		at, err = deliverAt(ctx, s, other, at, anew)
		return err
	}))
	return errors.Join(err, h.wantPositions(ctx, sink.Term{Log: other, Epoch: 4}, at))
}

func late(ctx context.Context, h Harness) error {
	orders := Batch("orders", 1, 4)
	var at map[string]events.Position
	err := h.term(ctx, func(s sink.Sink) (err error) {
		if at, err = deliverAt(ctx, s, theLog, nil, orders[2:]); err != nil {
			return err
		}
		result, err := s.(sink.Resumer).Redeliver(ctx, orders[:2])
		if rest, wrong := left(orders[:2], result); err == nil && (len(rest) > 0 || wrong != "") {
			err = fmt.Errorf("%d events are left, %s", len(rest), wrong)
		}
		return err
	})
	return errors.Join(err, h.wantPositions(ctx, term(2), at), h.exactly(append(orders[2:4:4], orders[:2]...)))
}

// zombie has two terms that both believe to lead.
func zombie(ctx context.Context, h Harness) error { return h.overtaken(ctx, term(1), term(2)) }

// orphan has what a sink sent before it was opened anew, in the same term, arrive later.
func orphan(ctx context.Context, h Harness) error { return h.overtaken(ctx, term(1), term(1)) }

func (h Harness) overtaken(ctx context.Context, before, after sink.Term) error {
	orders, stock := Batch("orders", 1, 4), Batch("stock", 1, 2)
	return errors.Join(h.in(ctx, before, func(earlier sink.Sink) error {
		if err := deliver(ctx, earlier, orders[:2]); err != nil {
			return err
		}
		return h.in(ctx, after, func(later sink.Sink) error {
			for range 2 {
				rest, err := fail(ctx, earlier, mix(orders[2:], stock), nil)
				if err == nil && len(rest) < 4 {
					err = fmt.Errorf("an earlier term claims to have stored %d events", 4-len(rest))
				}
				if err != nil {
					return err
				}
			}
			if err := h.exactly(orders[:2]); err != nil {
				return fmt.Errorf("after the earlier term: %w", err)
			}
			return deliver(ctx, later, stock, orders[2:])
		})
	}), h.exactly(orders, stock))
}

// restored has a log count terms again that the sink knows.
func restored(ctx context.Context, h Harness) error {
	orders := Batch("orders", 1, 3)
	if err := h.in(ctx, term(9), func(s sink.Sink) error { return deliver(ctx, s, orders[:2]) }); err != nil {
		return err
	}
	again := term(1)
	stale := (*sink.StaleError)(nil)
	if err := h.in(ctx, again, func(sink.Sink) error { return nil }); err != nil && (!errors.As(err, &stale) || stale.Epoch != 9) {
		return fmt.Errorf("an earlier term is refused with %w, want a StaleError of the later one", err)
	}
	again.Restored = true
	return errors.Join(h.in(ctx, again, func(s sink.Sink) error { return deliver(ctx, s, orders[2:]) }), h.exactly(orders))
}

// exactly compares what is stored with the batches, each of a stream of its own.
// Across streams no order is promised.
func (h Harness) exactly(batches ...[]events.Event) error { return h.compare(batches, false) }

// holds is exactly after a batch was delivered twice.
func (h Harness) holds(batches ...[]events.Event) error { return h.compare(batches, h.Repeats) }

func firsts(stored []events.Event) (once []events.Event) {
	seen := make(map[string]bool)
	for _, e := range stored {
		if id := e.ID.String(); !seen[id] {
			seen[id] = true
			once = append(once, e)
		}
	}
	return once
}

// compare compares them with what is stored, of which repeats are left out where there may
// be some.
func (h Harness) compare(batches [][]events.Event, repeats bool) error {
	stored, err := h.Stored()
	if err != nil {
		return err
	}
	if repeats {
		stored = firsts(stored)
	}
	got := make(map[string][]events.Event)
	for _, e := range stored {
		got[e.Stream] = append(got[e.Stream], e)
	}
	for _, batch := range batches {
		stream := batch[0].Stream
		if err := equal(got[stream], batch); err != nil {
			return fmt.Errorf("stream %s: %w", stream, err)
		}
		delete(got, stream)
	}
	for stream, rest := range got {
		return fmt.Errorf("stream %s: %d events, want none", stream, len(rest))
	}
	return nil
}

func equal(got, want []events.Event) error {
	for i := range min(len(got), len(want)) {
		if !bytes.Equal(events.AppendJSON(nil, &got[i]), events.AppendJSON(nil, &want[i])) {
			return fmt.Errorf("event %d is sequence %d with the id %s, or its content differs, want sequence %d with the id %s",
				i+1, got[i].Seq, got[i].ID, want[i].Seq, want[i].ID)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d events, want %d", len(got), len(want))
	}
	return nil
}
