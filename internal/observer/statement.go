package observer

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
)

// reading is a way through rows of a source, statement by statement. It knows how far it
// is. What the reader calls, lasts and canCut, does not change during a statement.
type reading interface {
	compared
	// statement is what the next one reads.
	statement() (Query, Range)
	// lasts is for how long that statement may hand over rows.
	lasts(ctx context.Context) time.Duration
	// canCut reports whether a statement that ends with this row leaves less to the one
	// after it.
	canCut(r *reader, row *Row) bool
	// settle follows them when they are, and reports whether the reading has to end.
	settle(r *reader, rows []row) (ends bool)
	// end follows a statement that came to its end. seen are the rows that it has met.
	end(ctx context.Context, r *reader, seen *bitmap) outcome
}

// compared is where rows come from that are compared.
type compared interface {
	// part is what is read.
	part() Part
	// reach follows rows that were compared and are to be committed.
	reach(rows []row)
}

// readStatement reads once, and commits what it finds chunk by chunk.
func (p *poll) readStatement(ctx context.Context, by reading) (outcome, error) {
	failpoint.Hit("poll.query")
	rows, err := p.startReading(ctx, by)
	if err != nil {
		return unfinished, err
	}
	defer func() {
		rows.stop()
		p.tied = rows.tied()
	}()
	// Chunks are read ahead, but compared in order, each with what the one
	// before it has committed.
	for {
		b, err := p.nextBatch(ctx, rows)
		if err != nil {
			return unfinished, err
		}
		if b == nil {
			return p.endStatement(ctx, rows, by)
		}
		failpoint.Hit("poll.chunk")
		if how, err := p.take(ctx, rows, by, b); how == full || err != nil {
			return how, err
		}
	}
}

// take compares a batch and commits what has changed.
func (p *poll) take(ctx context.Context, rows *reader, by reading, b *batch) (outcome, error) {
	ch, done, err := p.comparer.compare(ctx, by, b)
	how := unfinished
	if done < len(b.rows) {
		how = full
	}
	if err != nil {
		return how, p.countPoison(ctx, rows, err)
	}
	if err := p.commitIfAny(ctx, by, ch); err != nil {
		return how, err
	}
	if by.settle(rows, b.rows[:done]) {
		how = full
	}
	p.arrived.Add(1)
	return how, p.generation.keep(ctx, p.spec.StatementTime)
}

func (p *poll) endStatement(ctx context.Context, rows *reader, by reading) (outcome, error) {
	if err := rows.failure(ctx); err != nil {
		return unfinished, p.keepQuiet(ctx, err)
	}
	how := by.end(ctx, rows, &p.comparer.seen)
	if how == complete {
		return how, nil
	}
	return how, p.generation.keep(ctx, 0)
}
