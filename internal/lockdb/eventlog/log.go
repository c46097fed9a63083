package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/status"
)

// Options describe the process that reads and writes the log.
type Options struct {
	// Node is the name under which it makes notes for people.
	Node string
	// Logger and WentBack are required. WentBack counts how often the log was found in an
	// earlier state than this process knew.
	Logger   *slog.Logger
	WentBack prometheus.Counter
}

// Log is the event log. It is an [events.Log], and safe for concurrent use.
type Log struct {
	db   *sqldb.DB
	sql  *sqldb.Statements[logSQL]
	opts Options
	ends ends
	// news is of a commit that no notice was sent for.
	news chan struct{}
}

// New returns the event log of a database.
func New(db *sqldb.DB, o Options) *Log {
	return &Log{db: db, sql: sqldb.NewStatements(db, textsOf(db.Backend())), opts: o, news: make(chan struct{}, 1)}
}

// Backlog implements [events.Log]: one query finds every stream that holds
// events past the sink's offset.
func (l *Log) Backlog(ctx context.Context, sink string) ([]events.Backlog, error) {
	began := time.Now()
	backlog, err := sqldb.All(ctx, l.db, "look for undelivered events", l.sql.SQL().Backlog,
		func(scan sqldb.Scan, b *events.Backlog) error {
			return scan(&b.Stream, &b.Offset, &b.Next, &b.Last, sqldb.ScanTime(&b.Oldest), sqldb.ScanTime(&b.Now), &b.Paused)
		}, sink)
	if err == nil {
		l.sawEnds(ctx, backlog, began)
	}
	return backlog, err
}

// Read implements [events.Log].
func (l *Log) Read(ctx context.Context, ranges []events.Range, bytes int) (batch []events.Event, server string, err error) {
	if len(ranges) == 1 { // Which needs no sort.
		r := ranges[0]
		return l.read(ctx, r.Stream, r.Last-r.After, bytes, l.sql.SQL().After, r.Stream, r.After, r.Last-r.After)
	}
	var columns [3][]string
	n := int64(0)
	for _, r := range ranges {
		n += r.Last - r.After
		columns[0] = append(columns[0], r.Stream)
		columns[1] = append(columns[1], strconv.FormatInt(r.After, 10))
		columns[2] = append(columns[2], strconv.FormatInt(r.Last, 10))
	}
	return l.read(ctx, ranges[0].Stream, n, bytes, l.sql.SQL().Read, l.lists(columns[:])...)
}

// afterBytes bounds what one After holds in memory, beyond its last event.
const afterBytes = 2 << 20

// After returns up to limit events of a stream behind a sequence, in order; fewer where they
// are large, but at least one if there is one.
func (l *Log) After(ctx context.Context, stream string, after int64, limit int) ([]events.Event, error) {
	batch, _, err := l.read(ctx, stream, int64(limit), afterBytes, l.sql.SQL().After, stream, after, limit)
	return batch, err
}

// Latest returns the last events of a stream, newest first, with or without their data. They
// are fewer than the limit where their data is large.
func (l *Log) Latest(ctx context.Context, stream string, limit int, data bool) ([]events.Event, error) {
	batch, _, err := l.events(ctx, "read the last events of "+stream, int64(limit), afterBytes, l.sql.SQL().Latest, stream, limit, data)
	return batch, err
}

// errEnough ends a read before its limit.
var errEnough = errors.New("enough")

func (l *Log) read(ctx context.Context, first string, n int64, bytes int, text string, args ...any) (batch []events.Event, server string, err error) {
	began := time.Now()
	batch, server, err = l.events(ctx, "read events of "+first, n, bytes, text, args...)
	if err == nil {
		l.sawEvents(ctx, batch, began)
	}
	return batch, server, err
}

// mostAtOnce bounds what a read makes room for before it has seen a row.
const mostAtOnce = 5000

// events returns the events that a query finds, until their data is as long. It has room for n.
func (l *Log) events(ctx context.Context, what string, n int64, bytes int, text string, args ...any) (batch []events.Event, server string, err error) {
	ev := events.Event{Checked: l.db.Backend() == "postgres"} // SQLite has no such type.
	into := []any{
		sqldb.ScanRepeated(&ev.Stream), &ev.Seq, sqldb.ScanUUID(&ev.ID), sqldb.ScanRepeated(&ev.Type), &ev.Subject, &ev.Version,
		sqldb.ScanRepeated((*string)(&ev.Change)), &ev.Snapshot, sqldb.ScanTime(&ev.Time), sqldb.ScanTime(&ev.Observed), (*[]byte)(&ev.Data), sqldb.ScanRepeated(&server),
	}
	err = l.db.QueryNative(ctx, what, text, func(scan sqldb.Scan) error {
		if err := scan(into...); err != nil {
			return err
		}
		if ev.ID == uuid.Nil {
			return fmt.Errorf("event %d has no id: %w", ev.Seq, status.ErrContent)
		}
		if batch == nil {
			batch = make([]events.Event, 0, max(0, min(n, mostAtOnce)))
		}
		batch = append(batch, ev)
		if bytes -= len(ev.Data); bytes < 0 {
			return errEnough
		}
		return nil
	}, args...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return batch, server, err
}

// lists makes each column of texts one parameter.
func (l *Log) lists(columns [][]string) []any { return fn.Each(columns, l.db.List) }

// Before returns a sequence behind which the events of a stream begin that were logged at
// that time or later; last is that of its last event. A binary search reads few events,
// and takes the clock of the database for one that was never set back.
func (l *Log) Before(ctx context.Context, stream string, last int64, at time.Time) (int64, error) {
	before := int64(0)
	for before < last {
		middle := before + (last-before)/2
		next, logged, err := l.next(ctx, stream, middle)
		switch {
		case err != nil:
			return 0, err
		case next == 0 || next > last || !logged.Before(at):
			last = middle
		default:
			before = next
		}
	}
	return before, nil
}

// next returns the first event after seq, and when it was logged; 0 for none. The
// janitor removes events at the beginning of a stream.
func (l *Log) next(ctx context.Context, stream string, after int64) (seq int64, logged time.Time, err error) {
	err = l.db.Query(ctx, "look when events of "+stream+" were logged", l.sql.SQL().Next,
		func(scan func(...any) error) error { return scan(&seq, sqldb.ScanTime(&logged)) }, stream, after)
	return seq, logged, err
}

// Tail returns the last events of the log, oldest first: of one stream, or of
// all when stream is empty.
func (l *Log) Tail(ctx context.Context, stream string, limit int) ([]events.Event, error) {
	last, err := l.lastSeqs(ctx)
	if err != nil {
		return nil, err
	}
	var tail []events.Event
	for _, name := range slices.Sorted(maps.Keys(last)) {
		if stream != "" && name != stream {
			continue
		}
		part, err := l.After(ctx, name, max(0, last[name]-int64(limit)), limit)
		if err != nil {
			return nil, err
		}
		tail = append(tail, part...)
	}
	return tail, nil
}

// lastSeqs returns the last sequence of every stream.
func (l *Log) lastSeqs(ctx context.Context) (map[string]int64, error) {
	last := map[string]int64{}
	err := l.db.Query(ctx, "read the ends of the streams", l.sql.SQL().LastSeqs,
		func(scan func(...any) error) error {
			var stream string
			var seq int64
			err := scan(&stream, &seq)
			last[stream] = seq
			return err
		})
	return last, err
}

// Claim implements [events.Log]. The epoch stands in a row of its own, without
// a stream, which every acknowledgement looks at: streams come and go.
func (l *Log) Claim(ctx context.Context, sink string, epoch int64) (id uuid.UUID, err error) {
	n, err := l.db.Exec(ctx, "claim sink "+sink, l.sql.SQL().Claim, sink, epoch)
	if err == nil && n == 0 {
		err = fmt.Errorf("claim sink %s: %w", sink, events.ErrStale)
	}
	if err != nil {
		return uuid.Nil, err
	}
	err = l.db.Query(ctx, "read the id of the event log", l.sql.SQL().LogID,
		func(scan func(...any) error) error { return scan(&id) })
	if err == nil && id == uuid.Nil {
		err = errors.New("read the id of the event log: obs_log is empty; restore its row, or insert a new one")
	}
	return id, err
}

// Move implements [events.Log]. One statement looks and moves; offsets of streams of which
// the sink has had nothing are made before.
func (l *Log) Move(ctx context.Context, sink string, steps []events.Step, epoch int64) error {
	var begin []string
	for _, s := range steps {
		if s.After == 0 {
			begin = append(begin, s.Stream())
		}
	}
	if len(begin) > 0 {
		if _, err := l.db.Exec(ctx, "make offsets of sink "+sink, l.sql.SQL().Begin, sink, epoch, l.db.List(begin)); err != nil {
			return err
		}
	}
	n, err := l.move(ctx, sink, steps, epoch, true)
	if err == nil && n < int64(len(steps)) { // The server may be another one, and hold the same events.
		n, err = l.move(ctx, sink, steps, epoch, false)
	}
	if err != nil || n == int64(len(steps)) {
		return err
	}
	return l.whyNot(ctx, sink, epoch)
}

// move returns how many offsets have moved. It compares the ids of all events, or where the
// server may have stayed the same, that of the last.
func (l *Log) move(ctx context.Context, sink string, steps []events.Step, epoch int64, same bool) (int64, error) {
	var columns [8][]string
	for _, s := range steps {
		stored := events.Position{}
		if s.Stored != nil {
			stored = *s.Stored
		}
		server, compared := s.Server, s.Events[len(s.Events)-1:]
		if server == "" || !same {
			server, compared = "", s.Events
		}
		for i, text := range []string{
			s.Stream(), strconv.FormatInt(s.After, 10), strconv.FormatInt(s.Last(), 10), idsOf(compared),
			strconv.FormatInt(stored.Seq, 10), stored.ID.String(), stored.Digest.String(), server,
		} {
			columns[i] = append(columns[i], text)
		}
	}
	args := append([]any{sink, epoch}, l.lists(columns[:])...)
	if parked := parkedOf(steps); len(parked[0]) > 0 {
		return l.moveAndPark(ctx, sink, len(steps), args, parked)
	}
	return l.db.Exec(ctx, "move the offset of sink "+sink, l.sql.SQL().Move, args...)
}

// idsOf are the ids of events, one behind the other.
func idsOf(batch []events.Event) string {
	text := make([]byte, 0, len(batch)*36)
	for i := range batch {
		text = append(text, batch[i].ID.String()...)
	}
	return string(text)
}

// Marks implements [events.Log].
func (l *Log) Marks(ctx context.Context, sink string) ([]events.Mark, error) {
	return sqldb.All(ctx, l.db, "read what sink "+sink+" has stored", l.sql.SQL().Marks,
		func(scan sqldb.Scan, m *events.Mark) error {
			var id, digest string
			err := scan(&m.Stream, &m.Offset, &m.Stored.Seq, &id, &digest, &m.Adopted)
			if err == nil && m.Stored.Seq > 0 {
				m.Stored.Stream = m.Stream
				m.Stored.ID, err = uuid.Parse(id)
			}
			if err == nil && digest != "" { // Of an earlier version.
				m.Stored.Digest, err = uuid.Parse(digest)
			}
			return err
		}, sink)
}

// Seek implements [events.Log].
func (l *Log) Seek(ctx context.Context, sink string, from events.Mark, offset int64, stored events.Position, epoch int64) error {
	n, err := l.db.Exec(ctx, "set the offset of sink "+sink, l.sql.SQL().Seek, sink, from.Stream, epoch, from.Offset, offset, stored.Seq, stored.ID.String(), stored.Digest.String())
	if err != nil || n > 0 {
		return err
	}
	return l.whyNot(ctx, sink, epoch)
}

// Holds implements [events.Log].
func (l *Log) Holds(ctx context.Context, positions []events.Position) (held, taken []events.Position, err error) {
	found, err := l.at(ctx, positions)
	if err == nil && len(found) < len(positions) {
		err = errors.New("look for events: the coordination database is a standby")
	}
	if err != nil {
		return nil, nil, err
	}
	for i, f := range found {
		switch p := positions[i]; {
		case f.id == p.ID.String():
			held = append(held, p)
		case f.id == "" && f.last >= p.Seq:
			taken = append(taken, p)
		}
	}
	return held, taken, nil
}

// Pause implements [events.Log].
func (l *Log) Pause(ctx context.Context, sink, reason string, epoch int64) error {
	_, err := l.db.Exec(ctx, "pause sink "+sink, l.sql.SQL().PauseSink, sink, epoch, l.opts.Node, sqldb.Storable(reason))
	return err
}

// Failed implements [events.Log].
func (l *Log) Failed(ctx context.Context, sink, reason string, epoch int64) error {
	_, err := l.db.Exec(ctx, "note how sink "+sink+" does", l.sql.SQL().Failed, sink, epoch, sqldb.Storable(reason), l.opts.Node)
	return err
}

// whyNot says why an acknowledgement moved nothing.
func (l *Log) whyNot(ctx context.Context, sink string, epoch int64) error {
	var claimed int64
	err := l.db.Query(ctx, "look who has claimed sink "+sink, l.sql.SQL().WhyNot,
		func(scan func(...any) error) error { return scan(&claimed) }, sink)
	switch {
	case err != nil:
		return err
	// A claim that went back has the tokens behind it that come next: one of the former
	// log would keep the relays from the sink until these have passed it.
	case claimed != epoch:
		return fmt.Errorf("move the offset of sink %s: %w", sink, events.ErrStale)
	}
	l.ends.doubt()
	return fmt.Errorf("move the offset of sink %s: %w", sink, events.ErrLogChanged)
}

// Offsets returns the position, in every stream, of every sink that a relay has
// ever fed. now is the database's clock.
func (l *Log) Offsets(ctx context.Context, now time.Time) ([]status.Sink, error) {
	return sqldb.All(ctx, l.db, "read the offsets of sinks", l.sql.SQL().Offsets,
		func(scan sqldb.Scan, s *status.Sink) error {
			var p status.Pause
			var oldest time.Time
			err := scan(&s.Sink, &s.Stream, &s.Offset, &s.Last, sqldb.ScanTime(&oldest), &s.LastError, &s.FailedNode, sqldb.ScanTime(&s.FailedAt),
				sqldb.ScanTime(&p.At), &p.By, &p.Reason)
			if !oldest.IsZero() {
				s.Lag = now.Sub(oldest)
			}
			if !p.At.IsZero() {
				s.Pause = &p
			}
			return err
		})
}

// StoredByAll returns, for each stream, the sequence up to which all of the
// sinks have stored it. Without sinks that is everything.
func (l *Log) StoredByAll(ctx context.Context, sinks map[string]bool) (map[string]int64, error) {
	stored, err := l.lastSeqs(ctx)
	if err != nil {
		return nil, err
	}
	for sink := range sinks {
		backlog, err := l.Backlog(ctx, sink)
		if err != nil {
			return nil, err
		}
		for _, b := range backlog {
			stored[b.Stream] = min(stored[b.Stream], b.Offset)
		}
	}
	return stored, nil
}
