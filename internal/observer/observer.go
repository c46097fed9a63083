package observer

import (
	"context"
	"fmt"
)

// Observer polls one stream. It keeps nothing between two polls, so any node
// may do the next one. It is safe for concurrent use; of two polls of one
// stream at a time, one fails at its next commit.
type Observer struct {
	spec        Spec
	fingerprint string
}

// New returns an observer, or every mistake in its description at once.
func New(spec Spec) (*Observer, error) {
	spec = spec.withDefaults()
	if err := spec.validate(); err != nil {
		return nil, fmt.Errorf("observer %q: %w", spec.Stream, err)
	}
	return &Observer{spec: spec, fingerprint: fingerprint(spec)}, nil
}

// Poll reads what may have changed since the last poll and commits what is
// new, chunk by chunk. A poll that ends early, for whatever reason, loses
// nothing and repeats nothing: the next one begins at the low-water mark and
// recognises what was committed.
//
// When ctx ends, the error is its cause and no commit begins any more. Errors
// of the source and the store are wrapped; of its own, a poll returns
// [ErrQueryChanged], [ErrMostlyPoison], [ErrMassDisappearance] and
// [ErrOutOfOrder]. The statistics are valid beside any error.
func (o *Observer) Poll(ctx context.Context, src Source, st Store) (stats Stats, err error) {
	p := &poll{Observer: o, src: src, st: st, at: o.spec.Now()}
	defer func() { stats = p.summary() }()

	if err := p.readCursor(ctx); err != nil {
		return stats, err
	}
	// The horizon comes before the read: a row that commits between the two
	// lies above it and will be read again, whether this read sees it or not.
	if err := p.readHorizon(ctx); err != nil {
		return stats, err
	}
	rows, err := p.startReading(ctx)
	if err != nil {
		return stats, err
	}
	defer rows.stop()

	// Chunks are read ahead, but compared in order, each with what the one
	// before it has committed.
	for b := range rows.batches {
		ch, err := p.compare(ctx, b)
		if err != nil {
			return stats, err
		}
		if err := p.commitIfAny(ctx, ch); err != nil {
			return stats, err
		}
		if p.full {
			return stats, p.commitMarks(ctx)
		}
	}
	if err := rows.failure(ctx); err != nil {
		return stats, err
	}
	p.complete = true
	// Only a snapshot that was read to its end can say what it lacks.
	if o.spec.Detect == DetectSnapshot {
		if err := p.markGone(ctx); err != nil {
			return stats, err
		}
	}
	return stats, p.commitMarks(ctx)
}
