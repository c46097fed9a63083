package observer

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
)

// readStatement reads once, and commits what it finds chunk by chunk.
func (c *comparer) readStatement(ctx context.Context, by reading) (outcome, error) {
	failpoint.Hit("poll.query")
	rows, err := startReading(ctx, c.journal, by, &c.arrived)
	if err != nil {
		return unfinished, err
	}
	defer func() {
		rows.stop()
		c.tied = rows.tied()
	}()
	c.guess = false // It may begin among rows that were committed.
	// Chunks are read ahead, but compared in order, each with what the one
	// before it has committed.
	for {
		b, err := c.nextBatch(ctx, rows)
		if err != nil {
			return unfinished, err
		}
		if b == nil {
			return c.endStatement(ctx, rows, by)
		}
		failpoint.Hit("poll.chunk")
		if how, err := c.take(ctx, rows, by, b); how == full || err != nil {
			return how, err
		}
	}
}

// take compares a batch and commits what has changed.
func (c *comparer) take(ctx context.Context, rows *reader, by reading, b *batch) (outcome, error) {
	done, err := c.takeOrRepeat(ctx, rows, by, b)
	how := unfinished
	if done < len(b.rows) {
		how = full
	}
	if err != nil {
		return how, err
	}
	if by.settle(rows, b.rows[:done]) {
		how = full
	}
	c.arrived.Add(1)
	rows.reuse(b)
	return how, by.keep(ctx, c.spec.StatementTime)
}

// takeOrRepeat takes the rows for new where it may, and compares them where the commit refuses
// that. It returns how many the chunk has.
func (c *comparer) takeOrRepeat(ctx context.Context, rows *reader, by reading, b *batch) (done int, err error) {
	next, budget, stats, poison, shared, furthest, guess := c.next, c.budget, c.stats, c.poison, c.shared, c.furthest, c.mayGuess(b)
	ch, done, err := c.compare(ctx, rows.part, b, guess)
	if err == nil {
		by.reach(b.rows[:done])
		err = c.commitOrCarry(ctx, rows.part, b, done, ch)
	} else {
		err = c.countPoison(ctx, rows.batches, err)
	}
	if guess && errors.Is(err, ErrObserved) {
		// Also the marks: what refuses the repeated chunk commits them.
		c.next, c.budget, c.stats, c.poison, c.shared, c.furthest = next, budget, stats, poison, shared, furthest
		c.seen.cut(c.cursor.Rows)
		c.misled = true
		return c.takeOrRepeat(ctx, rows, by, b)
	}
	if err == nil {
		clear(ch.New)
		clear(ch.Events)
		c.room = Chunk{New: ch.New, Events: ch.Events}
	}
	c.guess = len(ch.New) == len(b.rows)
	rows.allNew.Store(c.guess)
	return done, err
}

// mayGuess reports whether all rows of a batch are taken for new. A poison row may be one
// that is known, which has then been met; a sweep counts the rows that it reaches; and no
// commit refuses the guess of a dry run.
func (c *comparer) mayGuess(b *batch) bool {
	if _, dry := c.st.(*dryRun); dry || !c.guess || c.misled || c.sweep != nil {
		return false
	}
	for i := range b.rows {
		if b.rows[i].err != nil {
			return false
		}
	}
	return true
}

func (c *comparer) endStatement(ctx context.Context, rows *reader, by reading) (outcome, error) {
	if err := c.commitCarried(ctx); err != nil {
		return unfinished, err
	}
	if err := rows.failure(ctx); err != nil {
		return unfinished, c.keepQuiet(ctx, by, err)
	}
	how := by.end(ctx, rows, &c.seen)
	if how == complete {
		return how, nil
	}
	return how, by.keep(ctx, 0)
}

// What follows is for long readings of rows that have not changed, as after a source
// was restored. If only the end of a poll committed the marks, a poll that does not
// come to its end would begin anew for ever. The marks are those of rows that were
// compared, so they may be committed at any time.

const (
	// quietMost is how many chunks without a change are compared between two commits.
	quietMost = 20
	// quietLongest bounds the time that marks wait for a commit, and rows for a full
	// chunk.
	quietLongest = 3 * time.Second
	// quietLeast keeps the commits apart when a poll comes to its deadline, and those of few
	// changes in a reading of all rows.
	quietLeast = 100 * time.Millisecond
)

// patience is how long marks wait for a commit: at most half of the time that is left,
// so that a poll which its deadline ends loses little.
func patience(ctx context.Context) time.Duration {
	return min(quietLongest, max(quietLeast, halfLeft(ctx, quietLongest)))
}

// commitOrCarry commits a chunk that is worth it. rows is how many rows of the batch it was made of.
func (c *comparer) commitOrCarry(ctx context.Context, part Part, b *batch, rows int, ch Chunk) error {
	switch {
	case c.mayCarry(b, rows, ch):
		c.carry(ch)
	case len(ch.Events) > 0, len(ch.Dead) > 0, len(c.carried.Events) > 0, c.isOverdue(ctx, part):
		return c.commit(ctx, ch)
	}
	return context.Cause(ctx)
}

// mayCarry reports whether the changes of a chunk can wait for those of the next: in a reading
// of all rows, whose marks say nothing of what was compared, if the last commit was just now
// and they are few beside the chunk. So no chunk is carried whose rows are all new, and none
// that was guessed.
func (c *comparer) mayCarry(b *batch, rows int, ch Chunk) bool {
	n := len(c.carried.Events) + len(ch.Events)
	few := 10*n <= rows && 10*(dataSize(c.carried)+dataSize(ch)) <= b.bytes
	return n > 0 && len(ch.Dead) == 0 && few && c.spec.readsAll() && time.Since(c.committed) < quietLeast
}

func dataSize(ch Chunk) (n int) {
	for i := range ch.Events {
		n += len(ch.Events[i].Data)
	}
	return n
}

// carry keeps the changes of a chunk for the next commit, in copies, as the chunk refers to
// all of its rows.
func (c *comparer) carry(ch Chunk) {
	c.carried.New = appendCopies(c.carried.New, ch.New)
	c.carried.Changed = appendCopies(c.carried.Changed, ch.Changed)
	for _, e := range ch.Events {
		e.Data = bytes.Clone(e.Data)
		c.carried.Events = append(c.carried.Events, e)
	}
}

func appendCopies(to, from []Observed) []Observed {
	for _, o := range from {
		o.Hash = bytes.Clone(o.Hash)
		to = append(to, o)
	}
	return to
}

// isOverdue counts a chunk without a change, and reports whether its marks are to be
// committed.
func (c *comparer) isOverdue(ctx context.Context, part Part) bool {
	c.quiet++
	if (c.late || part.isApart()) && time.Since(c.committed) >= c.spec.StatementTime {
		return true // This shows that the poll is not stuck, and renews its lease.
	}
	return (c.quiet >= quietMost || time.Since(c.committed) >= patience(ctx)) && c.hasPassed()
}

// hasPassed reports whether the marks move the place where the next poll, or the next
// step of a sweep, goes on. [generation.keep] stores that of a poll that reads all rows.
// More rows alone are no progress: a poll that does not get on has to fail.
func (j *journal) hasPassed() bool {
	return !j.spec.readsAll() &&
		(j.next.Low != j.cursor.Low || j.next.Newest != j.cursor.Newest || j.sweep.hasPassed())
}

// commitQuiet stores the marks of quiet chunks, if there are any.
func (c *comparer) commitQuiet(ctx context.Context, by reading) error {
	if c.quiet > 0 && c.hasPassed() {
		return c.commit(ctx, Chunk{})
	}
	return by.keep(ctx, 0)
}

// keepQuiet stores the marks of quiet chunks after an error of the source, because the
// next poll may fail at the same place. Rows out of order move no mark.
func (c *comparer) keepQuiet(ctx context.Context, by reading, failure error) error {
	if ctx.Err() != nil || errors.Is(failure, ErrOutOfOrder) {
		return failure
	}
	return errors.Join(failure, c.commitQuiet(ctx, by))
}

// nextBatch waits for a batch; nil means that there are no more. After a while it
// commits the marks and asks the reader for the rows that it has: a chunk may take
// longer to become full than a poll may. Changes that are carried do not wait so long.
func (c *comparer) nextBatch(ctx context.Context, r *reader) (*batch, error) {
	for {
		carrying, longest := len(c.carried.Events) > 0, patience(ctx)
		if carrying {
			longest = quietLeast - time.Since(c.committed)
		}
		overdue := time.NewTimer(longest)
		select {
		case b := <-r.batches:
			overdue.Stop()
			return b, nil
		case <-overdue.C:
		}
		if carrying {
			if err := c.commit(ctx, Chunk{}); err != nil {
				return nil, err
			}
			continue
		}
		r.hurry.Store(true)
		if err := c.commitQuiet(ctx, r.by); err != nil {
			return nil, err
		}
	}
}
