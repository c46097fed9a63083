package observer

import (
	"cmp"
	"context"
	"log/slog"
	"time"
)

const (
	// stepMargin is added to the time since the last full read, for what passes
	// between the beginning of a poll and its horizon and for clocks of nodes
	// that differ.
	stepMargin = time.Minute
	// stepUnknown stands in for the time since a full read of which nothing is
	// remembered.
	stepUnknown = time.Hour
)

// place commits a low-water mark that does not follow from rows. Newest goes
// with it, so that whoever polls next begins there in any case, even if this
// poll ends now.
func (p *poll) place(ctx context.Context, low string) error {
	p.next.low, p.next.newest = low, low
	if err := p.commit(ctx, p.newChunk()); err != nil {
		return err
	}
	p.start = p.cursor
	return nil
}

// placeMarks puts the low-water mark where the rows of this poll begin, if it
// is not there: at the start of a stream that is new, and below its place when
// the source's time has gone back.
func (p *poll) placeMarks(ctx context.Context) error {
	if p.isFresh() {
		return p.placeStart(ctx)
	}
	if err := p.followForm(ctx); err != nil {
		return err
	}
	// Without a horizon the clock itself tells: later full reads would cover up
	// when it was that it went back.
	earliest := cmp.Or(p.horizon.Earliest, p.horizon.Cursor, p.horizon.Clock)
	if earliest != "" && p.src.Compare(earliest, p.next.low) < 0 {
		return p.goBack(ctx, cmp.Or(p.horizon.Cursor, p.horizon.Clock))
	}
	return nil
}

// isFresh says that the stream was never polled.
func (p *poll) isFresh() bool { return p.cursor.Fingerprint == "" && p.cursor.Low == "" }

func (p *poll) placeStart(ctx context.Context) error {
	start := p.spec.Start
	if start.isZero() {
		return nil
	}
	low, at := "", start.At
	if start.Now {
		low, at = p.horizon.Cursor, p.horizon.Now
		if low == "" && !at.IsZero() {
			at = at.Add(-p.horizon.Lag) // What is open may have begun then.
		}
	}
	switch {
	case low != "":
	case at.IsZero():
		low = p.horizon.Clock
	default:
		var err error
		if low, err = p.cursorAt(ctx, at); err != nil {
			return err
		}
	}
	return p.place(ctx, low)
}

// goBack follows a source whose time has gone back: its clock was set, or it
// shows a transaction now that it could not show before. Rows written since
// then lie below the mark. The mark stays down there until polls move it. A
// source that hides transactions from now on looks the same, and is followed
// just so.
//
// The clock went on between its step and this poll, so rows may lie below the
// present horizon as well, by as much as the time since the step. That was
// after the last full read, or that one would have seen it. A step shorter than
// the time between two polls cannot be seen by anybody; the overlap is for it.
// And transactions that were open at the step are for the source to hold its
// horizon for.
//
// The start of the stream is the floor: what lies below it was left out on
// purpose, unless the clock itself is below it and writes new rows there. A start
// in the future is no such case: the mark waits there for the clock.
func (p *poll) goBack(ctx context.Context, low string) error {
	floor, err := p.beganAt(ctx)
	if err != nil || p.next.low == floor && !p.spec.Start.Now {
		return err
	}
	since := time.Duration(0)
	if now := p.horizon.Now; !now.IsZero() {
		since = p.sinceReread() + stepMargin
		cursor, err := p.cursorAt(ctx, now.Add(-p.horizon.Lag-since))
		if err != nil {
			return err
		}
		if cursor != "" && p.src.Compare(cursor, low) < 0 {
			low = cursor
		}
	}
	if p.src.Compare(low, floor) < 0 && !p.isClockBelow(floor) {
		low = floor
	}
	if p.src.Compare(low, p.next.low) >= 0 {
		return nil
	}
	why := p.whyBack()
	if err := p.place(ctx, low); err != nil {
		return err
	}
	p.spec.Logger.LogAttrs(ctx, slog.LevelWarn,
		"The horizon lies behind the mark; rows since then are read again",
		slog.String("stream", p.spec.Stream),
		slog.String("why", why),
		slog.Duration("horizon_lag", p.horizon.Lag),
		slog.Duration("before_horizon", since))
	return nil
}

// followForm begins anew where the mark is not of the form that the timestamps have:
// it says nothing about their rows, and may lie above all that will ever come. What was
// observed is recognised.
func (p *poll) followForm(ctx context.Context) error {
	if p.src.Restate(p.next.low, p.next.form) == p.next.low {
		return nil
	}
	began, err := p.beganAt(ctx)
	if err != nil {
		return err
	}
	p.next.rereadAt = time.Time{}
	p.tried.Store(nil)
	if err := p.place(ctx, began); err != nil {
		return err
	}
	p.spec.Logger.LogAttrs(ctx, slog.LevelWarn,
		"The low-water mark is not of the form of the timestamps; the source is read again from where the stream began",
		slog.String("stream", p.spec.Stream),
		slog.String("form", p.next.form))
	return nil
}

func (p *poll) isClockBelow(mark string) bool {
	return p.horizon.Clock != "" && p.src.Compare(p.horizon.Clock, mark) < 0
}

// whyBack says why the horizon lies below the mark.
func (p *poll) whyBack() string {
	switch {
	case p.isClockBelow(p.next.low):
		return "the source's time has gone back"
	case p.horizon.Exact:
		return "an older transaction has become visible, or overlap was raised"
	}
	return "the source hides transactions that it showed before, or overlap was raised"
}

// startAt is the instant at which the stream begins as a cursor; empty for none.
func (p *poll) startAt(ctx context.Context) (string, error) {
	if p.spec.Start.At.IsZero() {
		return "", nil
	}
	return p.cursorAt(ctx, p.spec.Start.At)
}

// sinceReread is how long ago the last full read began, at least.
func (p *poll) sinceReread() time.Duration {
	last := p.cursor.RereadAt
	if last.IsZero() {
		return stepUnknown
	}
	return max(0, p.at.Sub(last))
}

func (p *poll) cursorAt(ctx context.Context, at time.Time) (string, error) {
	cursor, err := p.src.CursorAt(ctx, p.query(), at)
	if err != nil {
		return "", failed(ctx, "write an instant as a cursor", err)
	}
	return cursor, nil
}
