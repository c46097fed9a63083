package observer

import (
	"context"
	"errors"
	"time"
)

// What follows is for long readings of rows in which nothing had changed, as
// after a source was restored. Were the marks committed at the end alone, a poll
// that its time does not suffice for would begin anew for ever. The marks are
// those of rows that were compared, so whenever they are committed, all rows
// below them were.

const (
	// quietMost is how many chunks without a change are compared before their
	// marks are committed all the same.
	quietMost = 20
	// quietLongest is the longest that marks wait for a commit, and rows for
	// their chunk to become full.
	quietLongest = 3 * time.Second
	// quietLeast keeps the commits apart when a poll comes to its deadline.
	quietLeast = 100 * time.Millisecond
)

// patience is how long marks wait for a commit. Half of the time that is left
// is the most: what a poll loses that is cut off by its deadline becomes less
// the nearer that is.
func patience(ctx context.Context) time.Duration {
	return min(quietLongest, max(quietLeast, halfLeft(ctx, quietLongest)))
}

// commitIfAny commits a chunk that is worth it.
func (p *poll) commitIfAny(ctx context.Context, by reading, ch Chunk) error {
	if len(ch.Events) == 0 && len(ch.Dead) == 0 && !p.isOverdue(ctx, by, ch) {
		return context.Cause(ctx)
	}
	return p.commit(ctx, ch)
}

// isOverdue counts a chunk in which nothing had changed, and says that its marks
// are to be committed.
func (p *poll) isOverdue(ctx context.Context, by reading, ch Chunk) bool {
	p.quiet++
	if (p.timeline.isLate() || by.part().isApart()) && time.Since(p.committed) >= p.spec.StatementTime {
		return true // It is not stuck, and has its lease still.
	}
	return (p.quiet >= quietMost || time.Since(p.committed) >= patience(ctx)) && p.hasPassed(ch)
}

// hasPassed says that a chunk moves the place from which a later poll, or the
// next step of a sweep, goes on. That of a poll that reads every row is kept apart,
// see [generation.keep].
// What only counts rows is no progress: whoever gets nowhere is to be told.
func (j *journal) hasPassed(ch Chunk) bool {
	return !j.spec.readsAll() &&
		(ch.Low != j.cursor.Low || ch.Newest != j.cursor.Newest || j.sweep.hasPassed())
}

// commitQuiet stores the marks of quiet chunks, if there are any.
func (p *poll) commitQuiet(ctx context.Context) error {
	if p.generation != nil {
		return p.generation.keep(ctx, 0)
	}
	if p.quiet == 0 {
		return nil
	}
	if ch := p.newChunk(); p.hasPassed(ch) {
		return p.commit(ctx, ch)
	}
	return nil
}

// keepQuiet stores the marks of quiet chunks before a reading that has failed
// is given up: the next one may fail at the same place. Rows that were out of
// order say nothing about where others lie.
func (p *poll) keepQuiet(ctx context.Context, failure error) error {
	if ctx.Err() != nil || errors.Is(failure, ErrOutOfOrder) {
		return failure
	}
	return errors.Join(failure, p.commitQuiet(ctx))
}

// nextBatch waits for a batch; nil means that there are no more. When that takes
// long it commits the marks, and asks the reader for what it has: a chunk may
// take longer to become full than a poll may.
func (p *poll) nextBatch(ctx context.Context, r *reader) (*batch, error) {
	for {
		overdue := time.NewTimer(patience(ctx))
		select {
		case b := <-r.batches:
			overdue.Stop()
			return b, nil
		case <-overdue.C:
		}
		r.hurry.Store(true)
		if err := p.commitQuiet(ctx); err != nil {
			return nil, err
		}
	}
}
