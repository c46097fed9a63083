package relay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
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
	comparisons, err := t.ask(ctx, resumer, streams)
	if err != nil {
		return false, err
	}
	if t.compared == nil {
		t.compared, t.comparedAt = make(map[string]int64), time.Now()
	}
	for i, c := range comparisons {
		c.mark = marks[streams[i]]
		c.mark.Stream = streams[i]
		seeks, err := t.settleOn(ctx, c)
		if err != nil {
			return moved, err
		}
		moved = moved || seeks
	}
	return moved, nil
}

// ask asks the sink for the positions of streams, and the log for their events.
func (t *term) ask(ctx context.Context, resumer sink.Resumer, streams []string) ([]comparison, error) {
	t.beat(2 * t.opts.Timeout)
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	positions, err := resumer.Positions(ctx, streams)
	emptied := errors.Is(err, sink.ErrEmptied)
	if err != nil && !emptied {
		return nil, &sinkError{fmt.Errorf("ask the sink what it has stored: %w", err)}
	}
	held, taken, err := t.opts.Log.Holds(ctx, positions)
	if err != nil {
		return nil, fmt.Errorf("look for the events that the sink holds: %w", err)
	}
	of, isHeld, isTaken := fn.By(positions, func(p events.Position) string { return p.Stream }), fn.Set(held), fn.Set(taken)
	all := make([]comparison, len(streams))
	for i, stream := range streams {
		all[i] = comparison{log: t.log, emptied: emptied}
		if has, ok := of[stream]; ok {
			all[i].has, all[i].held, all[i].taken = &has, isHeld[has], isTaken[has]
		}
	}
	return all, nil
}

// agrees reports whether the stream was compared with the sink at this offset: a log that
// went back has another one.
func (t *term) agrees(b events.Backlog) bool {
	at, ok := t.compared[b.Stream]
	return ok && at == b.Offset
}

// uncompared returns the streams that wait for a comparison.
func (t *term) uncompared(backlog []events.Backlog) map[string]bool {
	asked := make(map[string]bool)
	for _, b := range backlog {
		if !t.agrees(b) && !t.stays(b.Stream, b.Offset) {
			asked[b.Stream] = true
		}
	}
	for stream, h := range t.halted {
		if h.unlike && !t.stays(stream, h.offset) {
			asked[stream] = true
		}
	}
	return asked
}

func (t *term) marks(ctx context.Context) (map[string]events.Mark, error) {
	ctx, cancel := t.bounded(ctx, t.opts.Timeout)
	defer cancel()
	marks, err := t.opts.Log.Marks(ctx, t.opts.Sink)
	if err != nil {
		return nil, fmt.Errorf("read what the sink has stored: %w", err)
	}
	return fn.By(marks, func(m events.Mark) string { return m.Stream }), nil
}

// settleOn acts on a comparison, and reports whether the offset has moved.
func (t *term) settleOn(ctx context.Context, c comparison) (moved bool, err error) {
	stream, log := c.mark.Stream, t.opts.Logger.With("stream", c.mark.Stream)
	what, why := c.verdict()
	if what == isAhead {
		same, err := t.sameEvents(ctx, c)
		switch {
		case err != nil:
			return false, err
		case !same && c.mark.Adopted:
			what = agrees
		case !same:
			what, why = halts, c.unknown()
		}
	}
	offset := c.mark.Offset
	switch what {
	case halts:
		delete(t.compared, stream)
		t.halt(stream, offset, why)
		h := t.halted[stream]
		h.unlike = true
		t.halted[stream] = h
		return false, nil
	case isAhead:
		log.Info("Sink has stored more than was acknowledged", "offset", offset, "stored", c.has.Seq)
		offset = max(offset, c.has.Seq)
		err = t.seek(ctx, c, offset)
	case isBehind:
		t.metrics.rewinds.Inc()
		log.Warn("Sink has lost events that it had stored, delivering them again", "offset", offset, "stored", c.has.Seq)
		offset = c.has.Seq
		err = t.seek(ctx, c, offset)
	case isEmptied:
		log.Warn("Target of the sink was emptied by its own retention, going on from the offset", "offset", c.mark.Offset)
	}
	if err != nil {
		return false, fmt.Errorf("set the offset of %s: %w", stream, err)
	}
	t.compared[stream] = offset
	if t.halted[stream].unlike {
		t.resume(stream)
	}
	return what == isAhead || what == isBehind, nil
}

// seek sets the offset, and remembers what the sink has.
func (t *term) seek(ctx context.Context, c comparison, offset int64) error {
	ctx, cancel := t.bounded(ctx, t.opts.Timeout)
	defer cancel()
	return t.opts.Log.Seek(ctx, t.opts.Sink, c.mark, offset, *c.has, t.epoch)
}

// mostAhead is how far a sink may be ahead, by which the relay reads the log again.
const mostAhead = 100_000

// sameEvents reports whether the events that the sink has stored behind the offset are
// those that the log has there. A log that went back to an earlier state may have the
// last of them again in its place, behind others.
func (t *term) sameEvents(ctx context.Context, c comparison) (bool, error) {
	switch {
	case c.has.Seq <= c.mark.Offset: // Somebody has moved the offset.
		return true, nil
	case c.has.Seq-c.mark.Offset > mostAhead:
		return false, nil
	}
	ctx, cancel := t.bounded(ctx, t.opts.Timeout)
	defer cancel()
	var wanted []events.Event
	for after := c.mark.Offset; after < c.has.Seq; {
		found, _, err := t.opts.Log.Read(ctx, []events.Range{{Stream: c.mark.Stream, After: after, Last: c.has.Seq}}, t.opts.BatchBytes)
		if err != nil {
			return false, fmt.Errorf("read events of %s: %w", c.mark.Stream, err)
		}
		if len(found) == 0 || after > 0 && len(gapless(found, after+1)) < len(found) {
			return false, nil // A gap is not passed, whoever is behind it.
		}
		after = found[len(found)-1].Seq
		for _, e := range newPart(0, found, "", t.opts.Wanted).wanted {
			e.Data = nil
			wanted = append(wanted, e)
		}
	}
	ends := events.Ends(wanted, t.log, map[string]events.Position{c.mark.Stream: c.mark.Stored})
	return len(ends) == 1 && ends[0] == *c.has, nil
}
