package sinktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/events"
)

func whole(ctx context.Context, h Harness) error {
	orders, stock := shapes(), Batch("stock", 1, 2)
	return errors.Join(h.term(ctx, func(s events.Sink) error {
		return deliver(ctx, s, orders[:3], stock, orders[3:])
	}), h.exactly(orders, stock))
}

// shapes are events of one stream, each of which is hard to store in its own way.
func shapes() []events.Event {
	batch := Batch("a stream/of \"orders\"", 1, 6)
	batch[0].Data = []byte("{\n  \"note\": \"two\\nlines, \u2028 and ü\"\r\n}")
	batch[1].Subject = "east/4711/" + strings.Repeat("x", 4<<10)
	batch[2].Time = time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.FixedZone("", 3600))
	batch[3].Change, batch[3].Version = events.ChangeGone, 7
	batch[4].Data = nil
	batch[5].Data = []byte("no JSON: \x00\xff\n")
	return batch
}

func large(ctx context.Context, h Harness) error {
	batch := Batch("orders", 1, 5)
	for i := range batch {
		batch[i].Data = fmt.Appendf(nil, `{"note":"%s"}`, strings.Repeat("x", 300<<10))
	}
	return errors.Join(h.term(ctx, func(s events.Sink) error { return deliver(ctx, s, batch) }), h.exactly(batch))
}

func repeated(ctx context.Context, h Harness) error {
	orders, stock := Batch("orders", 1, 7), Batch("stock", 1, 5)
	return errors.Join(h.term(ctx, func(s events.Sink) error {
		return deliver(ctx, s, orders[:5], orders[:5], stock, orders[3:])
	}), h.holds(orders, stock))
}

func reopened(ctx context.Context, h Harness) error {
	orders, stock := Batch("orders", 1, 8), Batch("stock", 1, 5)
	err := h.term(ctx, func(s events.Sink) error { return deliver(ctx, s, orders[:5], stock[:3]) })
	if err = errors.Join(err, h.exactly(orders[:5], stock[:3])); err != nil {
		return fmt.Errorf("after the first term: %w", err)
	}
	return errors.Join(h.term(ctx, func(s events.Sink) error {
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
		if err := h.term(ctx, func(s events.Sink) error { return deliver(ctx, s, batch) }); err != nil {
			return err
		}
	}
	return h.exactly(append(old, anew...))
}

func torn(ctx context.Context, h Harness) error {
	orders := Batch("orders", 1, 3)
	return errors.Join(h.term(ctx, func(s events.Sink) error {
		n, err := h.tear(ctx, s, orders)
		if err != nil {
			return err
		}
		return deliver(ctx, s, orders[n:], Batch("orders", 4, 4))
	}), h.holds(append(orders, Batch("orders", 4, 4)...)))
}

func tornAndReopened(ctx context.Context, h Harness) error {
	orders := Batch("orders", 1, 3)
	stored := 0
	err := h.term(ctx, func(s events.Sink) (err error) {
		stored, err = h.tear(ctx, s, orders)
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(h.term(ctx, func(s events.Sink) error {
		return deliver(ctx, s, orders[stored:])
	}), h.holds(orders))
}

func tornBeforeAnother(ctx context.Context, h Harness) error {
	orders, stock := Batch("orders", 1, 3), Batch("stock", 1, 2)
	return errors.Join(h.term(ctx, func(s events.Sink) error {
		n, err := h.tear(ctx, s, orders)
		if err != nil {
			return err
		}
		return deliver(ctx, s, stock, orders[n:])
	}), h.holds(orders, stock))
}

// tear delivers a batch that is broken off, and returns how much of it the sink says
// is stored. The destination must hold that much.
func (h Harness) tear(ctx context.Context, s events.Sink, batch []events.Event) (int, error) {
	h.Tear()
	n, err := fail(ctx, s, batch, nil)
	if err != nil {
		return 0, err
	}
	stored, err := h.Stored()
	if err != nil {
		return 0, err
	}
	if len(stored) < n {
		return 0, fmt.Errorf("a torn batch has %d stored events, and the destination holds %d", n, len(stored))
	}
	return n, nil
}

func refused(ctx context.Context, h Harness) error {
	orders := Batch("orders", 1, 3)
	return errors.Join(h.term(ctx, func(s events.Sink) error {
		allow := h.Refuse()
		for range 2 {
			n, err := fail(ctx, s, orders, nil)
			if err == nil && n > 0 {
				err = fmt.Errorf("%d events are called stored that were refused", n)
			}
			if err != nil {
				allow()
				return err
			}
		}
		allow()
		return deliver(ctx, s, orders)
	}), h.exactly(orders))
}

var errOver = errors.New("the lease is over")

func ended(ctx context.Context, h Harness) error {
	orders := Batch("orders", 1, 3)
	return errors.Join(h.term(ctx, func(s events.Sink) error {
		over, cancel := context.WithCancelCause(ctx)
		cancel(errOver)
		n, err := fail(over, s, orders, errOver)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d events were stored after the context had ended", n)
		}
		if err = errors.Join(err, h.exactly()); err != nil {
			return err
		}
		return deliver(ctx, s, orders)
	}), h.exactly(orders))
}

// patience is how long Deliver may take when its context has ended.
const patience = 30 * time.Second

// stalled lets the batches of two streams run into their deadlines, and delivers them
// again in another order.
func stalled(ctx context.Context, h Harness) error {
	orders, stock := Batch("orders", 1, 3), Batch("stock", 1, 2)
	return errors.Join(h.term(ctx, func(s events.Sink) error {
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
		return deliver(ctx, s, stock, orders)
	}), h.holds(orders, stock))
}

// runOut delivers a batch within a short time, in which the destination stands still.
// It calls resume before it returns an error.
func runOut(ctx context.Context, s events.Sink, batch []events.Event, resume func()) error {
	brief, cancel := context.WithTimeoutCause(ctx, 20*time.Millisecond, errOver)
	defer cancel()
	answer := make(chan error, 1)
	go func() {
		n, err := fail(brief, s, batch, errOver)
		if err == nil && n > 0 {
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

// exactly compares what is stored with the batches, each of a stream of its own.
// Across streams no order is promised.
func (h Harness) exactly(batches ...[]events.Event) error {
	stored, err := h.Stored()
	if err != nil {
		return err
	}
	return compare(stored, batches)
}

// holds is exactly after a batch was delivered twice.
func (h Harness) holds(batches ...[]events.Event) error {
	stored, err := h.Stored()
	if err != nil {
		return err
	}
	if h.Repeats {
		stored = firsts(stored)
	}
	return compare(stored, batches)
}

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

func compare(stored []events.Event, batches [][]events.Event) error {
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
