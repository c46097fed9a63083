package observer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
)

// input is what a poll is given. Nothing of it changes while rows are read.
type input struct {
	*Observer
	// spec is the observer's, with the key of its rows.
	spec Spec
	// key is the key as the definition of the observer has it, fingerprint is by that.
	key         []string
	fingerprint string
	src         Source
	// at is when the poll began, by the node's clock.
	at time.Time
	// horizon is read once, before the rows; of a query without a timestamp it has the
	// identity alone.
	// horizonAt is when; the beginning of the poll before that.
	horizon   Horizon
	horizonAt time.Time
}

// sourceNow is the source's clock at horizonAt, or where it does not say, the node's.
func (in *input) sourceNow() time.Time {
	if now := in.horizon.Now; !now.IsZero() {
		return now
	}
	return in.at
}

// journal is the stream in the store: its cursor, what the next commit says of it, and
// the commits.
type journal struct {
	*input
	st Store
	// start is the cursor with which the reading of rows began, cursor the one after
	// the last commit.
	start, cursor Cursor
	// next has the marks of the next commit: how far the stream is observed, and of which
	// source, query and configuration that holds. keys and accepted are decoded from it.
	next     Cursor
	keys     KeyForm
	accepted Refusal
	// sweep is nil for a poll.
	sweep *sweepProgress
	// quiet counts chunks since the last commit, none of which changed anything;
	// committed is when that was, or when the poll began.
	quiet     int
	committed time.Time
	// carried are changes that were compared and that the next commit writes, whatever it is for.
	carried Chunk
	// late says that the time of the poll is over, and that it goes on.
	late bool
	// instead replaces another's unfinished reading with the next commit: were it gone on with
	// later, rows that are met from now on would be taken for gone.
	instead *Generation
	stats   Stats
	poison  poisonRows
	// shared counts the rows of an observer of new rows that share their key with one before
	// them in a chunk.
	shared int64
	// furthest is how far rows lie in the source's future.
	furthest time.Duration
}

func newJournal(o *Observer, src Source, st Store) *journal {
	in := &input{Observer: o, spec: o.spec, src: src, at: o.spec.Now(), horizonAt: time.Now()}
	return &journal{input: in, st: st, committed: time.Now()}
}

// goOnFrom takes the cursor and its marks.
func (j *journal) goOnFrom(c Cursor) (err error) {
	j.cursor, j.next = c, c
	if j.keys, err = DecodeKeyForm(c.Marks.KeyForm); err != nil {
		return err
	}
	j.accepted, err = DecodeRefusal(c.Accepted)
	return err
}

// revert forgets what was compared and not committed.
func (j *journal) revert() error {
	was := j.next
	err := j.goOnFrom(j.cursor)
	j.next.Fingerprint, j.next.Definition = was.Fingerprint, was.Definition
	j.next.Marks.Identity, j.next.Marks.Order = was.Marks.Identity, was.Marks.Order
	j.next.Marks.Columns, j.next.Marks.FullColumns = was.Marks.Columns, was.Marks.FullColumns
	j.quiet, j.committed = 0, time.Now()
	return err
}

// query is the observer's, with the form of the stream and the order of its members.
func (j *journal) query() Query {
	q := j.spec.Query
	q.Form, q.Order = j.next.Marks.Form, j.next.Marks.Order
	return q
}

// formRows is how many rows were observed before the form of a stream's timestamps is
// final: the first row of a table may be an odd one.
const formRows = 10

func (j *journal) readHorizon(ctx context.Context) (err error) {
	if j.spec.Query.Timestamp == "" {
		if j.horizon.Identity, err = j.src.Identity(ctx); err != nil {
			return failed(ctx, "read identity", err)
		}
		return nil
	}
	q := j.query()
	if j.cursor.Rows < formRows {
		q.Form = ""
	}
	h, err := j.src.Horizon(ctx, q)
	if err != nil {
		return failed(ctx, "read horizon", err)
	}
	j.horizon, j.horizonAt, j.next.Marks.Form = h, time.Now(), h.Form
	return nil
}

// tellLogged leaves out rows that have no timestamp, whose events bear the time of the poll.
func (j *journal) tellLogged(batch []events.Event) {
	if j.spec.Logged == nil || j.spec.Query.Timestamp == "" {
		return
	}
	now := j.spec.Now()
	if !j.horizon.Now.IsZero() {
		now = j.horizon.Now.Add(time.Since(j.horizonAt))
	}
	for i := range batch {
		if !batch[i].Time.Equal(j.at) {
			j.spec.Logged(&batch[i], now)
		}
	}
}

// isFuture reports whether a cursor lies above the source's clock.
func (j *journal) isFuture(cursor string) bool {
	clock := j.horizon.Clock
	return clock != "" && j.src.Compare(cursor, clock) > 0
}

// advance moves the marks up to a row's cursor: newest not beyond the source's
// clock, or one row in the future would hide all that come before its time, and the
// low-water mark not beyond the horizon. Rows never move a mark back.
func (j *journal) advance(cursor string, light bool) {
	if cursor == "" {
		return
	}
	newest := cursor
	if j.isFuture(newest) {
		newest = j.horizon.Clock
	}
	if j.src.Compare(newest, j.next.Newest) > 0 {
		j.next.Newest = newest
	}
	if j.src.Compare(cursor, j.horizon.Cursor) > 0 {
		cursor = j.horizon.Cursor
	}
	if !light && j.src.Compare(cursor, j.next.Low) > 0 {
		j.next.Low = cursor
	}
}

func (j *journal) newID(o Observed) uuid.UUID {
	return events.NewID(j.spec.Stream, j.cursor.Epoch, o.Key, o.Version, o.Hash)
}

func (j *journal) newEvent(id uuid.UUID, o Observed, what events.Change, at time.Time, data []byte) events.Event {
	return events.Event{
		ID:      id,
		Stream:  j.spec.Stream,
		Type:    j.spec.EventType,
		Subject: o.Key,
		Version: o.Version,
		Change:  what,
		Time:    events.Writable(at),
		Data:    data,
	}
}

// marks are those that the next commit leaves.
func (j *journal) marks() Cursor {
	m := j.next
	m.Marks.KeyForm, m.Accepted = j.keys.Encode(), j.accepted.Encode()
	return m
}

// marksMoved reports whether the next commit changes more of the cursor than RereadAt.
func (j *journal) marksMoved() bool {
	m := j.marks()
	m.Marks.RereadAt = j.cursor.Marks.RereadAt
	return m != j.cursor
}

// commit commits what a chunk holds, with the marks and the step of a sweep. It does not
// begin when the poll has ended, and is not interrupted once it has begun: to find out an
// unknown outcome costs more than the commit.
func (j *journal) commit(ctx context.Context, ch Chunk) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.spec.CommitTimeout)
	defer cancel()
	ch.CommitID, ch.Before = uuid.New(), j.cursor
	ch.Generation = cmp.Or(ch.Generation, j.instead)
	ch.follow(j.carried)
	ch.Advance(j.marks())
	if j.sweep != nil {
		ch.Sweep = j.sweep.step(len(ch.Events))
	}
	next, err := j.st.Commit(ctx, ch)
	if err != nil {
		return fmt.Errorf("commit chunk: %w", err)
	}
	j.cursor, j.next, j.quiet, j.committed, j.instead, j.carried = next, next, 0, time.Now(), nil, Chunk{}
	j.sweep.commit(ch.Sweep)
	j.tellLogged(ch.Events)
	j.stats.Chunks++
	j.stats.Events += int64(len(ch.Events))
	j.stats.Poison += int64(len(ch.Dead))
	j.poison.note(ch)
	j.log.LogAttrs(ctx, slog.LevelDebug, "Chunk committed",
		slog.Int("events", len(ch.Events)), slog.Int("poison", len(ch.Dead)), slog.Int64("seq", next.LastSeq))
	return nil
}

// commitCarried commits what is carried before the poll can end for another reason than its
// time: if it always ends there, its changes would never be committed.
func (j *journal) commitCarried(ctx context.Context) error {
	if len(j.carried.Events) > 0 && ctx.Err() == nil {
		return j.commit(ctx, Chunk{})
	}
	return nil
}

// failed wraps an error of a call that ctx can end. When it has, the cause is
// what happened, and the error only how the callee noticed.
func failed(ctx context.Context, operation string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%s: %w", operation, err)
}
