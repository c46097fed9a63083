package relay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
)

// comparePace is how long a comparison of all streams is believed: the target of a sink may
// be restored while there is nothing to deliver.
const comparePace = time.Minute

// compare compares the positions that the sink holds with what the log knows of it: of all
// streams when the sink was opened, and once a minute, and of each that appears later, or
// was halted. It reports whether an offset has moved.
func (t *term) compare(ctx context.Context, backlog []events.Backlog) (moved bool, err error) {
	resumer, ok := t.sink.(sink.Resumer)
	if !ok {
		return false, nil
	}
	if time.Since(t.comparedAt) >= comparePace {
		t.compared = nil
	}
	asked := t.uncompared(backlog)
	if t.compared != nil && len(asked) == 0 {
		return false, nil
	}
	marks, err := t.marks(ctx)
	if err != nil {
		return false, err
	}
	if t.compared == nil {
		for stream := range marks {
			asked[stream] = true
		}
	}
	streams := slices.Sorted(maps.Keys(asked))
	t.beat(t.opts.Timeout)
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	positions, err := resumer.Positions(ctx, streams)
	emptied := errors.Is(err, sink.ErrEmptied)
	if err != nil && !emptied {
		return false, &sinkError{fmt.Errorf("ask the sink what it has stored: %w", err)}
	}
	held, taken, err := t.opts.Log.Holds(ctx, positions)
	if err != nil {
		return false, fmt.Errorf("look for the events that the sink holds: %w", err)
	}
	if t.compared == nil {
		t.compared, t.comparedAt = make(map[string]bool), time.Now()
	}
	of := make(map[string]*events.Position, len(positions))
	for i := range positions {
		of[positions[i].Stream] = &positions[i]
	}
	for _, stream := range streams {
		c := comparison{mark: marks[stream], log: t.log, has: of[stream], emptied: emptied}
		c.mark.Stream = stream
		if c.has != nil {
			c.held, c.taken = slices.Contains(held, *c.has), slices.Contains(taken, *c.has)
		}
		seeks, err := t.settleOn(ctx, c)
		if err != nil {
			return moved, err
		}
		moved = moved || seeks
	}
	return moved, nil
}

// uncompared returns the streams that wait for a comparison.
func (t *term) uncompared(backlog []events.Backlog) map[string]bool {
	asked := make(map[string]bool)
	for _, b := range backlog {
		if !t.compared[b.Stream] && !b.Paused && !t.stays(b.Stream, t.halted[b.Stream].offset) {
			asked[b.Stream] = true
		}
	}
	for stream, h := range t.halted {
		if !t.compared[stream] && !t.stays(stream, h.offset) {
			asked[stream] = true
		}
	}
	return asked
}

func (t *term) marks(ctx context.Context) (map[string]events.Mark, error) {
	t.beat(t.opts.Timeout)
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	marks, err := t.opts.Log.Marks(ctx, t.opts.Sink)
	if err != nil {
		return nil, fmt.Errorf("read what the sink has stored: %w", err)
	}
	of := make(map[string]events.Mark, len(marks))
	for _, m := range marks {
		of[m.Stream] = m
	}
	return of, nil
}

// settleOn acts on a comparison, and reports whether the offset has moved.
func (t *term) settleOn(ctx context.Context, c comparison) (moved bool, err error) {
	stream, log := c.mark.Stream, t.opts.Logger.With("stream", c.mark.Stream)
	what, why := c.verdict()
	if what == isAhead {
		same, err := t.sameBatch(ctx, c)
		if err != nil {
			return false, err
		}
		if !same {
			what, why = halts, c.unknown()
		}
	}
	switch what {
	case halts:
		delete(t.compared, stream)
		t.halt(stream, c.mark.Offset, why)
		return false, nil
	case isAhead:
		log.Info("Sink has stored more than was acknowledged", "offset", c.mark.Offset, "stored", c.has.Seq)
		err = t.opts.Log.Seek(ctx, t.opts.Sink, c.mark, max(c.mark.Offset, c.has.Seq), *c.has, t.epoch)
	case isBehind:
		t.metrics.rewinds.Inc()
		log.Warn("Sink has lost events that it had stored, delivering them again", "offset", c.mark.Offset, "stored", c.has.Seq)
		err = t.opts.Log.Seek(ctx, t.opts.Sink, c.mark, c.has.Seq, *c.has, t.epoch)
	case isEmptied:
		log.Warn("Target of the sink was emptied by its own retention, going on from the offset", "offset", c.mark.Offset)
	}
	if err != nil {
		return false, fmt.Errorf("set the offset of %s: %w", stream, err)
	}
	t.compared[stream] = true
	t.resume(stream)
	return what == isAhead || what == isBehind, nil
}

// sameBatch reports whether the events that the sink has stored behind the offset are
// those that the log has there. A log that went back to an earlier state may have the
// last of them again in its place, behind others.
func (t *term) sameBatch(ctx context.Context, c comparison) (bool, error) {
	if c.has.Seq <= c.mark.Offset {
		return true, nil // Somebody has moved the offset.
	}
	t.beat(t.opts.Timeout)
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	var wanted []events.Event
	for after := c.mark.Offset; after < c.has.Seq; {
		found, err := t.opts.Log.Read(ctx, []events.Range{{Stream: c.mark.Stream, After: after, Last: c.has.Seq}}, t.opts.BatchBytes)
		if err != nil {
			return false, fmt.Errorf("read events of %s: %w", c.mark.Stream, err)
		}
		if len(found) == 0 {
			return false, nil
		}
		after = found[len(found)-1].Seq
		wanted = append(wanted, newPart(0, found, t.opts.Wanted).wanted...)
	}
	ends := events.Ends(wanted, t.log)
	return len(ends) == 1 && ends[0] == *c.has, nil
}
