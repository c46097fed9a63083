package observer

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// poll is the state of one poll.
type poll struct {
	*Observer
	src Source
	st  Store
	at  time.Time

	// start is the cursor that the poll began with, cursor the one after the
	// last commit.
	start, cursor Cursor
	horizon       Horizon
	// low and newest are the marks after all that was compared so far.
	low, newest string
	lastTime    time.Time
	// seen are the numbers of the live rows that this poll has met.
	seen bitmap
	// changed counts new and changed rows; full says that there were more
	// than MaxChanged, complete that the read came to its end.
	changed        int
	full, complete bool
	stats          Stats
}

func (p *poll) readCursor(ctx context.Context) error {
	c, err := p.st.Cursor(ctx, p.spec.Stream)
	if err != nil {
		return failed(ctx, "read cursor", err)
	}
	p.start, p.cursor, p.low, p.newest = c, c, c.Low, c.Newest
	return p.checkFingerprint(c)
}

func (p *poll) readHorizon(ctx context.Context) error {
	if p.spec.Query.Timestamp == "" {
		return nil
	}
	h, err := p.src.Horizon(ctx, p.spec.Query)
	if err != nil {
		return failed(ctx, "read horizon", err)
	}
	p.horizon = h
	return nil
}

// advance moves the marks up to a row's cursor, the low-water mark not beyond
// the horizon. Neither ever moves back: the horizon may, and what lies below
// an earlier one stays settled.
func (p *poll) advance(cursor string) {
	if cursor == "" {
		return
	}
	if p.src.Compare(cursor, p.newest) > 0 {
		p.newest = cursor
	}
	if p.src.Compare(cursor, p.horizon.Cursor) > 0 {
		cursor = p.horizon.Cursor
	}
	if p.src.Compare(cursor, p.low) > 0 {
		p.low = cursor
	}
}

func (p *poll) newChunk() Chunk {
	return Chunk{
		Cursor:      p.cursor,
		CommitID:    uuid.New(),
		Low:         p.low,
		Newest:      p.newest,
		Fingerprint: p.fingerprint,
		Live:        p.cursor.Live,
	}
}

func (p *poll) commitIfAny(ctx context.Context, ch Chunk) error {
	if len(ch.Events) == 0 && len(ch.Dead) == 0 {
		return context.Cause(ctx)
	}
	return p.commit(ctx, ch)
}

// commitMarks stores marks that moved over rows in which nothing had changed.
func (p *poll) commitMarks(ctx context.Context) error {
	c := p.cursor
	if c.Low == p.low && c.Newest == p.newest && c.Fingerprint == p.fingerprint {
		return nil
	}
	return p.commit(ctx, p.newChunk())
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
	p.cursor = next
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
