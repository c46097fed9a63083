package observer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// poll is one poll, or one step of a sweep: the parts that hand rows on, each with the
// state that it alone changes.
type poll struct {
	*journal
	comparer *comparer
	// reading is where the rows come from: timeline, or generation for an observer that
	// reads all of them, or the range of a sweep. The other two are nil then.
	reading    reading
	timeline   *timeline
	generation *generation
	apart      apart
	outcome    outcome // of the reading so far
}

func (o *Observer) begin(src Source, st Store) *poll {
	j := newJournal(o, src, st)
	return &poll{journal: j, comparer: &comparer{journal: j}, apart: apart{journal: j}}
}

// Poll reads what may have changed since the last poll and commits what is
// new, chunk by chunk. A poll that ends early, for whatever reason, loses
// nothing and repeats nothing: the next one begins at the low-water mark and
// recognises what was committed.
//
// When ctx or the time of the poll ends, no commit begins any more. The error is the
// cause; but a poll that has committed something in its time is full and has none, and
// so is one that ends with [ErrNextTick].
// Errors of the source and the store are wrapped; of its own, a poll returns
// [ErrOtherDefinition], [ErrQueryChanged], [ErrColumnsChanged], [ErrSourcesAlternate],
// [ErrMostlyPoison], [ErrMassDisappearance] and [ErrOutOfOrder]. The statistics are valid beside
// any error.
func (o *Observer) Poll(ctx context.Context, src Source, st Store) (stats Stats, err error) {
	p := o.begin(src, st)
	defer func() { stats = p.end(ctx) }()
	err = p.run(ctx)
	if p.timeline.mayGoOn(err) {
		err = p.goOn(ctx)
	}
	return stats, p.noteRefusal(ctx, p.outOfTime(ctx, err))
}

func (p *poll) run(ctx context.Context) error {
	began := time.Now()
	limited, cancel := p.spec.limited(ctx, p.spec.PollTime)
	defer cancel()
	if err := p.prepare(limited); err != nil {
		return err
	}
	if p.generation.isWhole() {
		return p.readOn(ctx)
	}
	// Of a new stream the others come first: too many poison rows show beside them.
	if p.cursor.Rows == 0 {
		if err := p.read(limited); err != nil {
			return err
		}
	}
	var refused *refusedError // of rows that hold up no others
	if p.apart.parts = p.apart.all(); p.outcome != full && len(p.apart.parts) > 0 {
		left, err := p.apart.read(ctx, p.comparer, p.spec.PollTime-time.Since(began))
		if err != nil && !errors.As(err, &refused) {
			return err
		}
		limited, cancel = p.spec.limited(ctx, left)
		defer cancel()
	}
	if err := p.read(limited); err != nil {
		return err
	}
	if refused != nil {
		return refused
	}
	return p.finish(limited)
}

// goOn goes on where the poll was interrupted, under the same horizon. What it had
// compared and not committed counts for nothing.
func (p *poll) goOn(ctx context.Context) error {
	if err := p.revert(); err != nil {
		return err
	}
	p.late, p.timeline.from = true, p.timeline.reached
	p.comparer.seen, p.comparer.budget.changed = bitmap{}, int(p.stats.Events)
	p.outcome = unfinished
	p.log.LogAttrs(ctx, p.newsLevel(), "Poll reached poll-timeout among the rows that share the timestamp at which it began; it continues until it has read them all",
		slog.Int64("rows", p.stats.Rows))
	return p.readOn(ctx)
}

// prepare decides where the reading begins.
func (p *poll) prepare(ctx context.Context) error {
	if err := p.readCursor(ctx); err != nil {
		return err
	}
	// The horizon comes before the read: a row that commits between the two
	// lies above it and will be read again, whether this read sees it or not.
	if err := p.readHorizon(ctx); err != nil {
		return err
	}
	stream := origin{p.journal}
	if err := stream.recogniseSource(ctx); err != nil {
		return err
	}
	if err := stream.initMarks(ctx); err != nil {
		return err
	}
	return p.planReading(ctx)
}

// planReading decides how the rows are read, and begins that or goes on with it.
func (p *poll) planReading(ctx context.Context) (err error) {
	if !p.spec.readsAll() {
		p.comparer.budget.most = p.spec.MaxChanged
		p.timeline = newTimeline(p.journal)
		p.reading = p.timeline
		return nil
	}
	if p.generation, err = newGeneration(ctx, p.journal, &p.comparer.seen); err != nil {
		return err
	}
	if p.reading = p.generation; !p.generation.isWhole() {
		p.comparer.budget.most = p.spec.MaxChanged
	}
	if p.generation.Complete {
		p.outcome = complete
	}
	return nil
}

func (p *poll) read(ctx context.Context) (err error) {
	for p.outcome == unfinished && err == nil {
		p.outcome, err = p.comparer.readStatement(ctx, p.reading)
	}
	return err
}

// readOn reads for as long as rows arrive, and has the time of a poll to finish.
func (p *poll) readOn(ctx context.Context) error {
	arriving, stop := p.spec.whileRowsArrive(ctx, &p.comparer.arrived)
	defer stop()
	if err := p.read(arriving); err != nil {
		return err
	}
	after, cancel := p.spec.limited(ctx, p.spec.PollTime)
	defer cancel()
	return p.finish(after)
}

// finish commits what is left. Only a snapshot that was read to its end can say what it
// lacks.
func (p *poll) finish(ctx context.Context) (err error) {
	if p.outcome == complete && p.spec.Detect == DetectSnapshot {
		if p.outcome, err = p.generation.markGone(ctx); err != nil {
			return err
		}
	}
	return p.commitMarks(ctx)
}

// commitMarks stores marks that moved over rows in which nothing had changed.
func (p *poll) commitMarks(ctx context.Context) error {
	done := p.outcome == complete
	p.timeline.noteFullRead(done)
	if done && !p.apart.more && p.sweep == nil {
		p.next.FirstReading = false
	}
	if err := p.settleRefusal(done); err != nil {
		return err
	}
	ch := Chunk{Generation: p.generation.atEnd(done)}
	if ch.Generation == nil && !p.marksMoved() && !p.fullReadMatters() && !p.sweep.hasMoved() {
		return nil
	}
	return p.commit(ctx, ch)
}

// outOfTime makes a full poll of one whose time has ended, if it has committed anything.
// A poll that got nowhere among the rows of one timestamp would begin with the same rows
// for ever.
func (p *poll) outOfTime(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, ErrNextTick):
		p.outcome = full
		return nil
	case !errors.Is(err, ErrPollTime):
		return err
	case p.stats.Chunks > p.apart.chunks:
		p.outcome = full
		p.log.LogAttrs(ctx, p.newsLevel(), "Poll reached poll-timeout; the next one continues", slog.Int64("rows", p.stats.Rows))
		return nil
	case p.comparer.tied > 0:
		return fmt.Errorf("%w, and at least %d rows have the timestamp at which it began: "+
			"the next poll reads them again, so raise poll-timeout or max-rate until all of them fit into one poll", ErrPollTime, p.comparer.tied)
	}
	return err
}

// newsLevel is INFO for what a poll with events says of itself: one without is quiet.
func (p *poll) newsLevel() slog.Level {
	if p.stats.Events > 0 {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// end sums up.
func (p *poll) end(ctx context.Context) Stats {
	p.warnFuture(ctx, p.outcome == complete)
	p.warnPoison(ctx)
	p.warnShared(ctx)
	s := p.stats
	s.Readable = s.Rows > p.poison.met
	if p.poison.met > 0 && !s.Readable && s.Events == 0 && (s.Poison > 0 || p.cursor.LastSeq == 0) {
		s.OnlyPoison = p.spec.Query.PoisonClass(p.poison.last)
	}
	s.HorizonLag, s.ExactHorizon = p.horizon.Lag, p.horizon.Exact
	s.Behind = s.HorizonLag
	s.Full = (p.outcome == full || p.apart.more) && p.sweep == nil
	if p.outcome == complete || p.timeline == nil || p.timeline.lastTime.IsZero() {
		return s
	}
	s.Behind = max(s.Behind, p.at.Sub(p.timeline.lastTime))
	if s.Full {
		s.Lag = max(0, p.sourceNow().Sub(p.timeline.lastTime))
	}
	return s
}
