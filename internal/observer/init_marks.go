package observer

import (
	"cmp"
	"context"
	"log/slog"
	"time"
)

const (
	// stepMargin is added to the time since the last full read, for the time between
	// the beginning of a poll and its horizon, and for clocks of nodes that differ.
	stepMargin = time.Minute
	// stepUnknown replaces the time since a full read that is not remembered.
	stepUnknown = time.Hour
)

// origin puts the marks of a stream where they do not follow from rows.
type origin struct{ *journal }

// place commits a low-water mark. Newest goes with it, so that the next poll begins
// there in any case, even if this one ends now.
func (o origin) place(ctx context.Context, low string) error {
	o.next.Low, o.next.Newest = low, low
	if err := o.commit(ctx, Chunk{}); err != nil {
		return err
	}
	o.start = o.cursor
	return nil
}

// readAgain begins anew, with a source of which nothing was read yet.
func (o origin) readAgain(ctx context.Context, low string) error {
	o.next.Marks.RereadAt, o.next.Marks.FollowedFrom, o.next.FirstReading = time.Time{}, "", false
	o.tried.Store(nil)
	return o.place(ctx, low)
}

// initMarks puts the low-water mark of a new stream at its start, and that of another
// one back if the source's time has gone back.
func (o origin) initMarks(ctx context.Context) error {
	if o.isFresh() {
		return o.initStart(ctx)
	}
	if err := o.followForm(ctx); err != nil {
		return err
	}
	// Without a horizon the clock itself tells: after later full reads the time of the
	// step would be unknown.
	earliest := cmp.Or(o.horizon.Earliest, o.horizon.Cursor, o.horizon.Clock)
	o.lowerFollowed(earliest)
	if earliest != "" && o.src.Compare(earliest, o.next.Low) < 0 {
		return o.rewind(ctx, cmp.Or(o.horizon.Cursor, o.horizon.Clock))
	}
	return nil
}

// lowerFollowed makes rows count as new that may appear from now on below the horizon of
// the first reading: those of an older transaction that has become visible, and all that
// are written while the source's clock is below it.
func (o origin) lowerFollowed(earliest string) {
	from := o.src.Restate(o.next.Marks.FollowedFrom, o.next.Marks.Form)
	switch {
	case from == "":
	case o.isClockBelow(from):
		o.next.Marks.FollowedFrom = ""
	case earliest != "" && o.src.Compare(earliest, from) < 0:
		o.next.Marks.FollowedFrom = o.horizon.Cursor
	}
}

// isFresh reports whether the stream was never polled.
func (o origin) isFresh() bool { return o.cursor.Fingerprint == "" && o.cursor.Low == "" }

func (o origin) initStart(ctx context.Context) error {
	if o.cursor.Rows == 0 { // Else it was set back, and finds what it has missed.
		o.next.Marks.FollowedFrom = o.horizon.Cursor
		o.next.FirstReading = o.spec.readsAll() || o.horizon.Undated // Others go by the timestamp alone.
	}
	if o.spec.Start.isZero() {
		o.tellOfHistory(ctx)
		return nil
	}
	low, err := o.startNow(ctx)
	if err != nil {
		return err
	}
	return o.place(ctx, low)
}

// tellOfHistory says what a reading without a start does.
func (o origin) tellOfHistory(ctx context.Context) {
	switch {
	case o.cursor.Rows > 0:
		o.log.LogAttrs(ctx, slog.LevelInfo, "The observer was reset; of the rows that its source has, those that are not as it knows them become events")
	case o.spec.readsAll():
		o.log.LogAttrs(ctx, slog.LevelInfo, "The observer is new; all rows that its source has become events")
	default:
		o.log.LogAttrs(ctx, slog.LevelInfo, "The observer is new; all rows that its source has become events, unless 'start: now' leaves out those of before")
	}
}

// startNow is where a stream begins that is new.
func (o origin) startNow(ctx context.Context) (string, error) {
	switch start, h := o.spec.Start, o.horizon; {
	case !start.Now:
		return o.cursorAt(ctx, start.At)
	case h.Cursor != "":
		return h.Cursor, nil
	case h.Now.IsZero():
		return h.Clock, nil
	default:
		return o.cursorAt(ctx, h.Now.Add(-h.Lag)) // What is open may have begun then.
	}
}

// rewind follows a source whose time has gone back: its clock was set, or it
// shows a transaction now that it could not show before. Rows written since
// then lie below the mark, which stays down there until polls move it. A
// source that hides transactions from now on looks the same.
func (o origin) rewind(ctx context.Context, low string) error {
	floor, err := o.beganAt(ctx)
	if err != nil || o.next.Low == floor && !o.spec.Start.Now {
		return err
	}
	low, since, err := o.beforeStep(ctx, low)
	if err != nil {
		return err
	}
	// What lies below the start of the stream was left out on purpose, unless the clock
	// is below it and writes new rows there. A mark at a start in the future waits there.
	if o.src.Compare(low, floor) < 0 && !o.isClockBelow(floor) {
		low = floor
	}
	if o.src.Compare(low, o.next.Low) >= 0 {
		return nil
	}
	why := o.whyBack()
	if err := o.place(ctx, low); err != nil {
		return err
	}
	o.log.LogAttrs(ctx, slog.LevelWarn, "The horizon is behind the mark; rows since then are read again",
		slog.String("why", why), slog.Duration("horizon_lag", o.horizon.Lag), slog.Duration("before_horizon", since))
	return nil
}

// beforeStep puts a mark below all rows that were written since the clock went back,
// and returns by how much. The clock went on since then, so rows may lie below the
// present horizon too, by as much as the time since the last full read, which would have
// seen the step. A step shorter than the time between two polls cannot be seen; the
// overlap is for it. The source holds its horizon for transactions that were open at
// the step.
func (o origin) beforeStep(ctx context.Context, low string) (string, time.Duration, error) {
	now := o.horizon.Now
	if now.IsZero() {
		return low, 0, nil
	}
	since := o.sinceFullRead() + stepMargin
	cursor, err := o.cursorAt(ctx, now.Add(-o.horizon.Lag-since))
	if cursor != "" && o.src.Compare(cursor, low) < 0 {
		low = cursor
	}
	return low, since, err
}

// followForm begins anew if the mark is not of the form of the timestamps: it says
// nothing about their rows, and may lie above all later ones. What was observed is
// recognised.
func (o origin) followForm(ctx context.Context) error {
	if o.src.Restate(o.next.Low, o.next.Marks.Form) == o.next.Low {
		return nil
	}
	began, err := o.beganAt(ctx)
	if err != nil {
		return err
	}
	if err := o.readAgain(ctx, began); err != nil {
		return err
	}
	o.log.LogAttrs(ctx, slog.LevelWarn, "The low-water mark is not of the form of the timestamps; the source is read again from where the stream began",
		slog.String("form", o.next.Marks.Form))
	return nil
}

func (o origin) isClockBelow(mark string) bool {
	return o.horizon.Clock != "" && o.src.Compare(o.horizon.Clock, mark) < 0
}

// whyBack is why the horizon lies below the mark.
func (o origin) whyBack() string {
	switch {
	case o.isClockBelow(o.next.Low):
		return "the source's time has gone back"
	case o.horizon.Exact:
		return "an older transaction has become visible, or overlap was raised"
	}
	return "the source hides transactions that it showed before, as where a right was revoked or the server is read-only now, or overlap was raised"
}

// sinceFullRead is how long ago the last full read began.
func (o origin) sinceFullRead() time.Duration {
	last := o.cursor.Marks.RereadAt
	if last.IsZero() {
		return stepUnknown
	}
	return max(0, o.at.Sub(last))
}

// beganAt is the start of the stream as a cursor, remembered for [Start.Now].
func (o origin) beganAt(ctx context.Context) (string, error) {
	switch start := o.spec.Start; {
	case start.Now && start.Began != nil:
		began, err := start.Began(ctx, o.spec.Stream)
		if err != nil {
			return "", failed(ctx, "read where the stream began", err)
		}
		return o.src.Restate(began, o.next.Marks.Form), nil
	case !start.At.IsZero():
		return o.cursorAt(ctx, start.At)
	}
	return "", nil
}

func (o origin) cursorAt(ctx context.Context, at time.Time) (string, error) {
	cursor, err := o.src.CursorAt(ctx, o.query(), at)
	if err != nil {
		return "", failed(ctx, "write an instant as a cursor", err)
	}
	return cursor, nil
}
