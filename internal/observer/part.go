package observer

import (
	"context"

	"github.com/observerd/observerd/internal/failpoint"
)

// readPart reads once, and commits what it finds chunk by chunk. Without a
// limit one part is all there is.
func (p *poll) readPart(ctx context.Context) error {
	failpoint.Hit("poll.query")
	rows, err := p.startReading(ctx)
	if err != nil {
		return err
	}
	defer p.noteAlike(rows)
	defer rows.stop()

	// Chunks are read ahead, but compared in order, each with what the one
	// before it has committed.
	for {
		b, err := p.nextBatch(ctx, rows)
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		failpoint.Hit("poll.chunk")
		ch, err := p.compare(ctx, b)
		if err != nil {
			return p.countPoison(ctx, rows, err)
		}
		if err := p.commitIfAny(ctx, ch); err != nil {
			return err
		}
		if !p.full {
			p.settled(rows, b.rows)
		}
		if err := p.keepGeneration(ctx, p.spec.StatementTime); err != nil {
			return err
		}
		p.arrived.Add(1)
		if p.full = p.full || p.sweep.isSpent(p.src) || p.late && p.isPast(); p.full {
			return nil
		}
	}
	p.partRows = rows.count
	if err := rows.failure(ctx); err != nil {
		return p.keepPassed(ctx, err)
	}
	p.planNext(rows)
	if p.complete || !p.spec.readsAll() {
		return nil
	}
	p.full = p.isLate(ctx)
	return p.keepGeneration(ctx, 0)
}

// noteAlike counts the rows of a reading that has not come past the timestamp at which
// it began, where no other can go on among them. It comes after the reading.
func (p *poll) noteAlike(r *reader) {
	p.alike = 0
	if !p.spec.readsAll() && r.order == "" && r.last != "" && r.last == p.from.cursor {
		p.alike = r.dated
	}
}

// planNext decides what follows a read that came to its end. One that has as
// many rows as it may have, or took as long as it may, is not all: the next begins
// at its last row, or at the first that has its timestamp. The horizon came before all of them, so
// whatever appears below it between two reads would have been in the first.
func (p *poll) planNext(r *reader) {
	if p.readsApart() {
		p.apart.cut = r.cut
		return
	}
	if p.spec.readsAll() {
		p.complete = !r.cut
		p.generation.seen.merge(p.seen)
		p.seen.clear()
		return
	}
	if !r.cut && (p.limit == 0 || r.dated < p.limit) {
		p.complete = true
		return
	}
	if end := r.end(); p.isBehind(end) {
		p.from = end
	} else {
		p.limit *= 2 // A group of equal timestamps that is larger than the limit.
	}
	// A row that is read once more is no second row of its key.
	p.seen = bitmap{}
}
