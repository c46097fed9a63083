package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// Event is an event of the log, see package events.
type Event = events.Event

// errShow is wrapped around an error of Emit, which is not one of the database.
var errShow = errors.New("show events")

// followBatch is how many events are read at once.
const followBatch = 500

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
	// a line end; neither is valid after it returns. Its error ends the tail.
	Emit func(e *Event, line []byte) error
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
	tick := time.NewTicker(t.options.Every)
	defer tick.Stop()
	lost := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		polled, err := t.op.polled(ctx)
		if err == nil {
			err = t.showNew(ctx, polled)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errShow), err != nil && !sqldb.Unavailable(err):
			return err
		case err != nil && !lost:
			t.op.log.Warn("Waiting for the coordination database", "err", err)
		}
		lost = err != nil
	}
}

// tailer remembers how far each stream has been shown.
type tailer struct {
	op      *Operator
	options TailOptions
	after   map[string]int64
	line    []byte
}

// showNew shows the new events of the streams.
func (t *tailer) showNew(ctx context.Context, polled map[string]lockdb.StreamStatus) error {
	for _, id := range sortedKeys(polled) {
		if t.options.Observer != "" && id != t.options.Observer {
			continue
		}
		if err := t.stream(ctx, id, polled[id].LastSeq); err != nil {
			return err
		}
	}
	return nil
}

// stream shows the events of a stream up to the last, except those that the janitor
// has removed.
func (t *tailer) stream(ctx context.Context, id string, last int64) error {
	for t.after[id] < last {
		read, err := t.op.db.Log().Read(ctx, id, t.after[id], followBatch)
		if err != nil {
			return err
		}
		if len(read) == 0 {
			t.after[id] = last
		}
		for i := range read {
			t.line = events.AppendJSON(t.line[:0], &read[i])
			if err := t.options.Emit(&read[i], t.line); err != nil {
				return fmt.Errorf("%w: %w", errShow, err)
			}
			t.after[id] = read[i].Seq
		}
	}
	return nil
}
