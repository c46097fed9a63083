package eventlog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

const (
	// examineEvery is how often the ends of streams are compared where nothing gives
	// cause to.
	examineEvery = time.Minute
	// examineTimeout bounds it: a poll waits for it.
	examineTimeout = 5 * time.Second
)

// end is an event that stood in the log, and when this process had seen it there.
type end struct {
	seq int64
	id  uuid.UUID
	at  time.Time
}

// ends are the newest events, one of each stream, that this process has committed,
// read from the log, or found at the end of a sink's file. What an operator or
// retention does leaves them in place, or takes them away and leaves the sequence. So
// the log went back, in a failover to a standby that lagged or in a restore, where a
// stream ends before its event, or has another one there. The zero value is ready.
type ends struct {
	mu    sync.Mutex
	known map[string]end
	// suspect says that the log may be another one: there is a new connection.
	suspect  bool
	examined time.Time
	// back is when it was last found that the log went back.
	back time.Time

	turn sync.Mutex // to examine
}

// note remembers an event that stood in the log, by a statement that was sent at that
// time, unless a newer one is known. The answer of one that was sent before the log
// went back may come after that was found.
func (e *ends) note(stream string, seq int64, id uuid.UUID, began time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known == nil {
		e.known, e.examined = make(map[string]end), time.Now()
	}
	if seq > e.known[stream].seq && e.back.Before(began) {
		e.known[stream] = end{seq: seq, id: id, at: time.Now()}
	}
}

// before returns what was known of a stream before that time: a statement that was
// sent then must find it. It is zero for nothing.
func (e *ends) before(stream string, began time.Time) end {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.known[stream]; known.at.Before(began) {
		return known
	}
	return end{}
}

// doubt has the log examined when it is next looked at.
func (e *ends) doubt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.suspect = true
}

// due reports whether it is time to examine the log. Who is told so does it.
func (e *ends) due() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.known) == 0 || !e.suspect && time.Since(e.examined) < examineEvery {
		return false
	}
	e.suspect, e.examined = false, time.Now()
	return true
}

func (e *ends) all() map[string]end {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.known)
}

// forget drops what the log has no more: the next event is a new beginning.
func (e *ends) forget(stream string, gone end) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.back = time.Now()
	if e.known[stream] == gone {
		delete(e.known, stream)
	}
}

// Doubt has the log examined when it is next looked at, as after a failover.
func (l *Log) Doubt() { l.ends.doubt() }

// Committed takes in the last event that a commit of this process has appended; the
// commit was sent at that time.
func (l *Log) Committed(stream string, seq int64, id uuid.UUID, began time.Time) {
	l.ends.note(stream, seq, id, began)
}

// SawEnd takes in where a stream ends by a statement that was sent at that time.
func (l *Log) SawEnd(ctx context.Context, stream string, last int64, began time.Time) {
	l.sawEnds(ctx, []events.Backlog{{Stream: stream, Last: last}}, began)
}

// sawEnds is the same of several streams. It costs a statement of its own where one of
// them ends too early, after a new connection, and once a minute.
func (l *Log) sawEnds(ctx context.Context, streams []events.Backlog, began time.Time) {
	early := slices.ContainsFunc(streams, func(b events.Backlog) bool { return l.ends.before(b.Stream, began).seq > b.Last })
	if early || l.ends.due() {
		l.examine(ctx)
	}
}

// sawEvents is told what a statement has read, stream by stream, that was sent at that time.
func (l *Log) sawEvents(ctx context.Context, batch []events.Event, began time.Time) {
	var known end
	for i := range batch {
		e := &batch[i]
		if i == 0 || batch[i-1].Stream != e.Stream {
			known = l.ends.before(e.Stream, began)
		}
		if e.Seq == known.seq && e.ID != known.id {
			l.examine(ctx)
		}
		if i == len(batch)-1 || batch[i+1].Stream != e.Stream {
			l.ends.note(e.Stream, e.Seq, e.ID, began)
		}
	}
}

// wentBack is a stream that does not have its newest event any more.
type wentBack struct {
	stream string
	known  end
	// what says which event, and detail begins with it.
	what, detail string
}

// examine compares all ends with the log, and logs streams that went back. It does
// not log its own failure: the reader of the log meets the same.
func (l *Log) examine(ctx context.Context) {
	l.ends.turn.Lock()
	defer l.ends.turn.Unlock()
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	back, err := l.goneBack(ctx, l.ends.all())
	if err != nil {
		l.ends.doubt()
		l.opts.Logger.Debug("Ends of the streams not compared; the next look tries again", "err", err)
		return
	}
	if len(back) == 0 {
		return
	}
	for _, b := range back {
		l.ends.forget(b.stream, b.known)
	}
	news, err := l.noteBack(ctx, back)
	switch {
	case err != nil:
		l.opts.Logger.Warn("'observerd status' does not show that the event log went back: it could not be recorded", "streams", len(back), "err", err)
	case news == 0:
		return
	}
	l.opts.WentBack.Inc()
	l.opts.Logger.Error("Event log went back to an earlier state: readers may have events that are not in it, and keep what was undone; "+
		"'observerd status' has all streams", "streams", len(back), "first", back[0].stream, "event", back[0].detail)
}

// found is what the log has of a stream: where it ends, and the id of the event at a
// sequence; empty for none.
type found struct {
	last int64
	id   string
}

// at looks for events where the log should have them, and returns what it has, in the order
// of the positions; nothing where it is read from a standby.
func (l *Log) at(ctx context.Context, positions []events.Position) ([]found, error) {
	var columns [2][]string
	for _, p := range positions {
		columns[0], columns[1] = append(columns[0], p.Stream), append(columns[1], strconv.FormatInt(p.Seq, 10))
	}
	return sqldb.All(ctx, l.db, "compare the ends of the streams", l.sql.SQL().Ends,
		func(scan sqldb.Scan, f *found) error { return scan(&f.last, &f.id) }, l.lists(columns[:])...)
}

// goneBack returns the streams that are not as they were known, by name.
func (l *Log) goneBack(ctx context.Context, known map[string]end) (back []wentBack, err error) {
	positions := fn.Each(slices.Sorted(maps.Keys(known)), func(stream string) events.Position {
		return events.Position{Stream: stream, Seq: known[stream].seq, ID: known[stream].id}
	})
	all, err := l.at(ctx, positions)
	for i, f := range all {
		b := wentBack{stream: positions[i].Stream, known: known[positions[i].Stream]}
		b.what = fmt.Sprintf("%d %s", b.known.seq, b.known.id)
		switch {
		case f.last < b.known.seq:
			b.detail = fmt.Sprintf("%s is not in the log any more, the stream ends at %d", b.what, f.last)
		case f.id != "" && f.id != b.known.id.String():
			b.detail = fmt.Sprintf("%s is %s now", b.what, f.id)
		default: // It stands there, or retention has removed it.
			continue
		}
		back = append(back, b)
	}
	return back, err
}

// ActWentBack is the action of the rows of obs_audit that say that a stream went back;
// the actor is the node that noticed it.
const ActWentBack = "log-went-back"

// noteBack notes for other nodes that streams went back, and returns how many of them
// no node has noted for the same event.
func (l *Log) noteBack(ctx context.Context, back []wentBack) (news int64, err error) {
	columns := make([][]string, 3)
	for _, b := range back {
		columns[0], columns[1], columns[2] = append(columns[0], b.stream), append(columns[1], b.detail), append(columns[2], b.what)
	}
	return l.db.Exec(ctx, "note that the event log went back", l.sql.SQL().NoteBack, append([]any{l.opts.Node, ActWentBack}, l.lists(columns)...)...)
}

// Delivered notes the last event that a sink holds, as one that was kept over a
// restart of this process, and compares it with the log.
func (l *Log) Delivered(ctx context.Context, last events.Event) {
	l.ends.note(last.Stream, last.Seq, last.ID, time.Now())
	l.examine(ctx)
}
