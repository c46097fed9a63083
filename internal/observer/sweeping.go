package observer

import (
	"context"
	"time"
)

// Sweep takes one step of a sweep and returns the sweep after it, also with an
// error. The step commits under the same lease and the same cursor as a poll, but
// leaves the cursor's marks where they are. A poll that commits meanwhile makes the
// step fail, so no older version of a row follows a newer.
//
// Only rows below the low-water mark are swept, where no row will appear any more, so
// a position that was passed is final. Above it late rows may appear, and the polls
// read from there on anyway. So a sweep ends at the mark at the latest; before the first
// poll, when there is no mark, it does nothing. The next sweep finds a row that is
// back-dated behind the position.
//
// It returns the errors of a poll, [ErrNotSwept] for an observer that reads
// all rows, and [ErrSourceReplaced].
func (o *Observer) Sweep(ctx context.Context, src Source, st Store, s Sweep, b Budget) (_ Sweep, stats Stats, err error) {
	if o.spec.readsAll() {
		return s, stats, ErrNotSwept
	}
	p := o.begin(src, st)
	defer func() { stats = p.end(ctx) }()

	if err := p.prepareSweep(ctx); err != nil || p.next.Low == "" {
		return s, stats, err
	}
	in := p.planSweep(s, b)
	if err := p.read(ctx); err != nil {
		err = p.noteRefusal(ctx, err)
		return p.sweep.Sweep, stats, err
	}
	if p.outcome == complete {
		in.close()
	}
	err = p.commitMarks(ctx)
	return p.sweep.Sweep, stats, err
}

// prepareSweep gives a new stream its start.
func (p *poll) prepareSweep(ctx context.Context) error {
	stream := origin{p.journal}
	if err := stream.prepareBeside(ctx); err != nil || !stream.isFresh() {
		return err
	}
	if err := p.readHorizon(ctx); err != nil {
		return err
	}
	return stream.initStart(ctx)
}

// planSweep bounds the step, which is complete at once if nothing is left below the
// low-water mark.
func (p *poll) planSweep(s Sweep, b Budget) *sweepSpan {
	in := &sweepSpan{span{journal: p.journal, from: position{cursor: s.Position}, before: s.Before, limit: b.Rows}}
	if in.before == "" || p.src.Compare(p.next.Low, in.before) < 0 {
		in.before = p.next.Low
	}
	p.sweep = &sweepProgress{Sweep: s, budget: b, start: s.Position, position: s.Position, began: time.Now()}
	if p.src.Compare(s.Position, in.before) >= 0 {
		p.outcome = complete
	}
	p.reading = in
	return in
}

// sweepSpan is the reading of a step.
type sweepSpan struct{ span }

func (s *sweepSpan) reach(rows []row) {
	if r := lastDated(rows); r != nil {
		s.sweep.position = r.cursor
	}
	s.sweep.rows += int64(len(rows))
	s.sweep.uncounted += int64(len(rows))
}

func (s *sweepSpan) settle(*reader, []row) (ends bool) { return s.sweep.isSpent(s.src) }

// close ends the sweep, at the step's bound unless a mark that went back has left that
// behind the position.
func (s *sweepSpan) close() {
	s.sweep.done = true
	if s.src.Compare(s.before, s.sweep.position) > 0 {
		s.sweep.position = s.before
	}
}
