package observer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Observer polls one stream. It remembers nothing between two polls but how
// much the source can bear and what it has told, so any node may do the next one. It is safe for
// concurrent use; of two polls of one stream at a time, one fails at its next
// commit.
type Observer struct {
	spec        Spec
	fingerprint string
	limit       limit
	// met are the databases that have answered this observer.
	met acquaintances
	// tried is when a full read above a standing horizon was begun last.
	tried atomic.Pointer[time.Time]
	// future is how many rows in the source's future were told of.
	future atomic.Int64
	// rate is nil without a bound.
	rate *rate.Limiter
}

// New returns an observer, or every mistake in its description at once.
func New(spec Spec) (*Observer, error) {
	spec = spec.withDefaults()
	if err := spec.validate(); err != nil {
		return nil, fmt.Errorf("observer %q: %w", spec.Stream, err)
	}
	o := &Observer{spec: spec, fingerprint: fingerprint(spec), limit: limit{most: spec.Limit}}
	if spec.MaxRate > 0 {
		o.rate = rate.NewLimiter(rate.Limit(spec.MaxRate), spec.ChunkRows)
	}
	return o, nil
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
	defer func() { stats = p.end(ctx, err) }()
	err = p.run(ctx)
	if p.mayGoOn(err) {
		if p, err = p.goOn(ctx); err == nil {
			err = p.readOn(ctx)
		}
	}
	return stats, p.noteRefusal(ctx, p.outOfTime(ctx, err))
}

// outOfTime takes no failure from a poll whose time has ended, if it got on: a
// backlog is worked off poll by poll. One that got nowhere within the rows of one
// timestamp, and could not go on among them, would begin with the same rows for ever.
func (p *poll) outOfTime(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, ErrNextTick):
		p.full, p.complete = true, false
		return nil
	case !errors.Is(err, ErrPollTime):
		return err
	case p.stats.Chunks > p.apart.chunks:
		p.full, p.complete = true, false
		p.spec.Logger.LogAttrs(ctx, slog.LevelInfo, "Poll reached poll-timeout; the next one goes on",
			slog.String("stream", p.spec.Stream), slog.Int64("rows", p.stats.Rows))
		return nil
	case p.alike > 0:
		return fmt.Errorf("%w, and at least %d rows have the timestamp at which it began: "+
			"the next poll reads them again, so raise poll-timeout or max-rate until all of them fit into one poll", ErrPollTime, p.alike)
	}
	return err
}

func (p *poll) run(ctx context.Context) error {
	began := time.Now()
	limited, cancel := p.limited(ctx)
	defer cancel()
	if err := p.prepare(limited); err != nil {
		return err
	}
	if p.isWhole() {
		return p.readOn(ctx)
	}
	// Of a new stream the others come first: too many poison rows show beside them.
	if p.cursor.Rows == 0 {
		if err := p.read(limited); err != nil {
			return err
		}
	}
	var refused *refusedError // of rows that hold up no others
	if p.apart.parts = p.partsApart(); !p.full && len(p.apart.parts) > 0 {
		left, err := p.readApart(ctx, p.spec.PollTime-time.Since(began))
		if err != nil && !errors.As(err, &refused) {
			return err
		}
		limited, cancel = p.limitedTo(ctx, left)
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

// readOn reads for as long as rows arrive, and has the time of a poll to finish.
func (p *poll) readOn(ctx context.Context) error {
	if err := p.readArriving(ctx); err != nil {
		return err
	}
	after, cancel := p.limited(ctx)
	defer cancel()
	return p.finish(after)
}

// prepare finds out where the reading begins.
func (p *poll) prepare(ctx context.Context) error {
	if err := p.readCursor(ctx); err != nil {
		return err
	}
	if err := p.recogniseSource(ctx); err != nil {
		return err
	}
	// The horizon comes before the read: a row that commits between the two
	// lies above it and will be read again, whether this read sees it or not.
	if err := p.readHorizon(ctx); err != nil {
		return err
	}
	if err := p.placeMarks(ctx); err != nil {
		return err
	}
	if err := p.planGeneration(ctx); err != nil {
		return err
	}
	p.planReading()
	return nil
}

func (p *poll) readArriving(ctx context.Context) error {
	ctx, stop := p.whileRowsArrive(ctx)
	defer stop()
	return p.read(ctx)
}

func (p *poll) read(ctx context.Context) error {
	for !p.complete && !p.full {
		if err := p.readPart(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *poll) finish(ctx context.Context) error {
	// Only a snapshot that was read to its end can say what it lacks.
	if p.complete && p.spec.Detect == DetectSnapshot {
		if err := p.markGone(ctx); err != nil {
			return err
		}
	}
	return p.commitMarks(ctx)
}
