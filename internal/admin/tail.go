package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/wait"
	"github.com/observerd/observerd/internal/wiring"
)

// Event is an event of the log, see package events.
type Event = events.Event

// EventLines shows events to people.
type EventLines = events.Lines

// errShow is wrapped around an error of Emit, which is not one of the database.
var errShow = errors.New("show events")

// tailBatch is how many events are read at once, of all streams together; of each at
// least leastBatch.
const (
	tailBatch  = 500
	leastBatch = 20
)

// TailOptions select events.
type TailOptions struct {
	// Observer is an id; empty means all of them.
	Observer string
	// Last is how many events of each observer come first, oldest first. The others
	// replace it where they are set: FromSeq is the sequence of the first event, From the
	// first time of the log, and Since how long ago that is by the database's clock.
	Last    int
	FromSeq int64
	From    time.Time
	Since   time.Duration
	// Follow goes on with events that are logged later, until the context
	// ends; Every is the time between two looks.
	Follow bool
	Every  time.Duration
	// Emit receives each event, with its CloudEvents JSON on one line without
	// a line end, which is not valid after it returns. Those of a stream come in its
	// order, those of several by the time at which they were committed.
	Emit func(e *Event, line []byte) error
	// Shown is called after the events of each look. An error of either ends the tail.
	Shown func() error
}

// NotStarted reports whether the tables are missing that the first node makes.
func NotStarted(err error) bool {
	return errors.Is(err, wiring.ErrAbsent) || errors.Is(err, sqldb.ErrPending)
}

// Tail reads the event log. While it follows, it waits for a database that
// goes away.
func (op *Operator) Tail(ctx context.Context, o TailOptions) error {
	polled, err := op.polled(ctx)
	if err == nil && o.Observer != "" {
		_, err = op.known(ctx, o.Observer)
	}
	if err != nil {
		return err
	}
	t := &tailer{op: op, options: o, after: make(map[string]int64)}
	if o.Since > 0 {
		now, err := op.db.Now(ctx)
		if err != nil {
			return err
		}
		t.options.From = now.Add(-o.Since)
	}
	if err := t.begin(ctx, polled); err != nil {
		return err
	}
	if err := t.showNew(ctx, polled); err != nil || !o.Follow {
		return err
	}
	return t.follow(ctx)
}

// begin finds the first event of each stream.
func (t *tailer) begin(ctx context.Context, polled map[string]lockdb.StreamStatus) (err error) {
	for id, s := range polled {
		switch {
		case t.options.Observer != "" && id != t.options.Observer:
		case !t.options.From.IsZero():
			t.after[id], err = t.op.db.Log().Before(ctx, id, s.LastSeq, t.options.From)
		case t.options.FromSeq > 0:
			t.after[id] = t.options.FromSeq - 1
		default:
			t.after[id] = max(0, s.LastSeq-int64(t.options.Last))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *tailer) follow(ctx context.Context) error {
	lost := false
	for wait.For(ctx, t.options.Every) {
		polled, err := t.op.polled(ctx)
		if err == nil {
			err = t.showNew(ctx, polled)
		}
		switch {
		case ctx.Err() != nil: // The wait says so.
		case errors.Is(err, errShow), err != nil && !sqldb.Unavailable(err):
			return err
		case err != nil && !lost:
			t.op.log.Warn("Waiting for the coordination database", "err", err)
		}
		lost = err != nil
	}
	return nil
}

// tailer remembers how far each stream has been shown.
type tailer struct {
	op      *Operator
	options TailOptions
	after   map[string]int64
	line    []byte
}

// showNew shows the new events of the streams, up to the last ones that are known.
func (t *tailer) showNew(ctx context.Context, polled map[string]lockdb.StreamStatus) error {
	var heads []*head
	limit := max(leastBatch, tailBatch/max(1, len(polled)))
	for _, id := range slices.Sorted(maps.Keys(polled)) {
		if t.options.Observer == "" || id == t.options.Observer {
			heads = append(heads, &head{stream: id, last: polled[id].LastSeq})
		}
	}
	for {
		var first *head
		for _, h := range heads {
			if err := t.fill(ctx, h, limit); err != nil {
				return err
			}
			if len(h.events) > 0 && (first == nil || h.events[0].Observed.Before(first.events[0].Observed)) {
				first = h
			}
		}
		if first == nil {
			return shown(t.options.Shown())
		}
		e := &first.events[0]
		t.line = events.AppendJSON(t.line[:0], e)
		if err := t.options.Emit(e, t.line); err != nil {
			return shown(err)
		}
		t.after[first.stream], first.events = e.Seq, first.events[1:]
	}
}

// shown makes an error of those who show events one.
func shown(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errShow, err)
}

// head is what was read of a stream and is to be shown next.
type head struct {
	stream string
	last   int64
	events []Event
}

// fill reads on when the events of a stream are used up, and not past the last one, except
// those that the janitor has removed.
func (t *tailer) fill(ctx context.Context, h *head, limit int) (err error) {
	if len(h.events) > 0 || t.after[h.stream] >= h.last {
		return nil
	}
	h.events, err = t.op.db.Log().After(ctx, h.stream, t.after[h.stream], limit)
	if err == nil && len(h.events) == 0 {
		t.after[h.stream] = h.last
	}
	return err
}
