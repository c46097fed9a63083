package observer

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// poll is the state of one poll, or of one step of a sweep.
type poll struct {
	*Observer
	src Source
	st  Store
	at  time.Time

	// start is the cursor that the poll began with, cursor the one after the
	// last commit.
	start, cursor Cursor
	horizon       Horizon
	// next is what the next commit says of the stream.
	next     marks
	lastTime time.Time
	// from is where the next read begins and before where it ends, limit how
	// many rows it may have, partRows how many the last one has had. A light
	// poll does not begin at the low-water mark, so it does not move it.
	from            position
	before          string
	limit, partRows int
	light           bool
	// part is what is read of the source, and apart how far the poll is with what has
	// no place in the order of timestamps.
	part  Part
	apart apart
	// alike is how many rows the last reading has had, if all of them have the
	// timestamp at which it began and no reading can begin among them.
	alike int
	// began is the timestamp at which the first read began, reached what was compared
	// and committed since then. late says that the time of the poll is over, and that
	// it goes on all the same.
	began   string
	reached position
	late    bool
	// seen are the numbers of the live rows that this read has met, generation is
	// what they belong to, for an observer that reads all rows.
	seen       bitmap
	generation generation
	// arrived grows with each row that was read and each chunk that was done.
	arrived atomic.Int64
	// fresh are the keys of the chunk that were not known before it. It is kept
	// from one chunk to the next for its room alone.
	fresh map[string]struct{}
	// quiet counts chunks since the last commit, none of which changed anything;
	// committed is when that was, or when the poll began.
	quiet     int
	committed time.Time
	// changed counts new and changed rows, of which there may be most; 0 for no limit.
	// full says that there were more than the poll may take, complete that the reading
	// came to its end.
	changed, most  int
	full, complete bool
	// sweep is nil for a poll.
	sweep    *sweeping
	stats    Stats
	furthest time.Duration
}

// position is a place in the order of timestamps, and of the keys of those that
// share one. key is empty where a read can only begin with the first of them, and
// order identifies the order of keys.
type position struct{ cursor, key, order string }

func (o *Observer) begin(src Source, st Store) *poll {
	return &poll{Observer: o, src: src, st: st, at: o.spec.Now(), committed: time.Now(), part: PartDated, most: o.spec.MaxChanged}
}

// end sums up, and lets the next poll learn from this one.
func (p *poll) end(ctx context.Context, err error) Stats {
	p.Observer.limit.adapt(err, p.partRows)
	p.warnFuture(ctx)
	return p.summary()
}

func (p *poll) readCursor(ctx context.Context) error {
	c, err := p.st.Cursor(ctx, p.spec.Stream)
	if err != nil {
		return failed(ctx, "read cursor", err)
	}
	if err := p.follow(c); err != nil {
		return err
	}
	if err := p.define(ctx); err != nil {
		return err
	}
	return p.checkFingerprint(c)
}

// follow takes over what a cursor says.
func (p *poll) follow(c Cursor) (err error) {
	p.start, p.cursor = c, c
	p.next, err = marksOf(c)
	return err
}

// query is what is read, with what the poll knows of it.
func (p *poll) query() Query {
	q := p.spec.Query
	q.Form, q.NormalKeys = p.next.form, p.next.keys.Normal
	return q
}

// formRows is how many rows were observed of a stream before the form of its
// timestamps stands: the first of a table may be an odd one.
const formRows = 10

func (p *poll) readHorizon(ctx context.Context) error {
	if p.spec.Query.Timestamp == "" {
		return nil
	}
	q := p.query()
	if p.cursor.Rows < formRows {
		q.Form = ""
	}
	h, err := p.src.Horizon(ctx, q)
	if err != nil {
		return failed(ctx, "read horizon", err)
	}
	p.horizon, p.next.form = h, h.Form
	return nil
}

// advance moves the marks up to a row's cursor: newest not beyond the source's
// clock, lest one row in the future hide all that come before its time, and the
// low-water mark not beyond the horizon. Rows never move a mark back.
func (p *poll) advance(cursor string) {
	if cursor == "" {
		return
	}
	newest := cursor
	if p.isFuture(newest) {
		newest = p.horizon.Clock
	}
	if p.src.Compare(newest, p.next.newest) > 0 {
		p.next.newest = newest
	}
	if p.src.Compare(cursor, p.horizon.Cursor) > 0 {
		cursor = p.horizon.Cursor
	}
	if !p.light && p.src.Compare(cursor, p.next.low) > 0 {
		p.next.low = cursor
	}
}

func (p *poll) newChunk() Chunk {
	ch := Chunk{Cursor: p.cursor, CommitID: uuid.New(), Live: p.cursor.Live}
	p.mark(&ch)
	return ch
}

// mark writes into a chunk how far the poll is.
func (p *poll) mark(ch *Chunk) {
	p.next.write(ch, p.fingerprint)
	if p.sweep != nil {
		ch.Sweep = p.sweep.step(len(ch.Events))
	}
}

func (p *poll) commitIfAny(ctx context.Context, ch Chunk) error {
	if len(ch.Events) == 0 && len(ch.Dead) == 0 && !p.isOverdue(ctx, ch) {
		return context.Cause(ctx)
	}
	return p.commit(ctx, ch)
}

// commitMarks stores marks that moved over rows in which nothing had changed.
func (p *poll) commitMarks(ctx context.Context) error {
	p.noteReread()
	if err := p.settleRefusal(); err != nil {
		return err
	}
	ch := p.newChunk()
	ch.Generation = p.atEnd()
	if ch.Generation == nil && !ch.movesMarks() && !p.rereadMatters() && !p.sweep.hasMoved() {
		return nil
	}
	return p.commit(ctx, ch)
}

// commit does not begin when the poll has ended, and is not interrupted once
// it has begun: its outcome would be unknown, and finding it out costs more
// than the commit.
func (p *poll) commit(ctx context.Context, ch Chunk) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.spec.CommitTimeout)
	defer cancel()
	next, err := p.st.Commit(ctx, ch)
	if err != nil {
		return fmt.Errorf("commit chunk: %w", err)
	}
	p.cursor, p.quiet, p.committed = next, 0, time.Now()
	p.sweep.commit(ch.Sweep)
	p.generation.commit(ch.Generation)
	p.stats.Chunks++
	p.stats.Events += int64(len(ch.Events))
	p.stats.Poison += int64(len(ch.Dead))
	p.spec.Logger.LogAttrs(ctx, slog.LevelDebug, "Chunk committed",
		slog.String("stream", p.spec.Stream),
		slog.Int("events", len(ch.Events)),
		slog.Int("poison", len(ch.Dead)),
		slog.Int64("seq", next.LastSeq))
	return nil
}

func (p *poll) summary() Stats {
	s := p.stats
	s.HorizonLag, s.ExactHorizon = p.horizon.Lag, p.horizon.Exact
	s.Behind = s.HorizonLag
	s.Full = (p.full || p.apart.more) && p.sweep == nil
	if s.Full && !p.complete && !p.lastTime.IsZero() {
		now := p.horizon.Now
		if now.IsZero() {
			now = p.at
		}
		s.Lag = max(0, now.Sub(p.lastTime))
	}
	if !p.complete && !p.lastTime.IsZero() {
		s.Behind = max(s.Behind, p.at.Sub(p.lastTime))
	}
	return s
}

// failed wraps an error of a call that ctx can end. When it has, the cause is
// what happened, and the error only how the callee noticed.
func failed(ctx context.Context, operation string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%s: %w", operation, err)
}
