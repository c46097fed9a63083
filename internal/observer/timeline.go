package observer

import (
	"context"
	"errors"
	"time"
)

// span is a range of timestamps that is read in their order, in statements under one
// horizon.
type span struct {
	*journal
	// from is where the next statement begins and before where it ends, limit how
	// many rows it may have in a step of a sweep; 0 means any number.
	from   position
	before string
	limit  int
}

func (s *span) statement() (Query, Range) {
	in := Range{Part: PartDated, From: s.from.cursor, Key: s.from.key, Order: s.from.order, Before: s.before, Limit: s.limit}
	return s.query(), in
}

func (s *span) lasts(context.Context) time.Duration { return s.spec.StatementTime }

func (s *span) canCut(r *reader, row *Row) bool { return row.Cursor != "" && s.isBehind(r.end()) }

// isBehind reports whether a read that begins there leaves out rows of the present one.
// Different keys may be equal for the source, but no more than a statement has time for.
func (s *span) isBehind(at position) bool {
	if c := s.src.Compare(at.cursor, s.from.cursor); c != 0 {
		return c > 0
	}
	return at.key != "" && at.key != s.from.key
}

// end decides what follows a statement that came to its end. If its limit or its time
// has ended it, the next begins at its last row, or at the first with that timestamp.
// The horizon was read before all of them, so no row below it appears between two.
func (s *span) end(_ context.Context, r *reader, seen *bitmap) outcome {
	if !r.cut && (s.limit == 0 || r.dated < s.limit) {
		return complete
	}
	if end := r.end(); s.isBehind(end) {
		s.from = end
	} else {
		s.limit *= 2 // A group of equal timestamps that is larger than the limit.
	}
	// A row that is read again is no second row of its key.
	*seen = bitmap{}
	return unfinished
}

func (s *span) keep(context.Context, time.Duration) error { return nil }

// timeline is the reading of a poll, from a mark to the newest row.
type timeline struct {
	span
	// light says that the poll does not begin at the low-water mark, and does not move it.
	light bool
	// began is the timestamp at which the first statement began, reached the last row
	// that was compared and settled.
	began   string
	reached position
	// lastTime is that of the last row that was compared.
	lastTime time.Time
}

func (t *timeline) reach(rows []row) {
	if r := lastDated(rows); r != nil {
		t.advance(r.cursor, t.light)
		t.noteFullRead(false)
		t.lastTime = r.time
	}
}

func (t *timeline) settle(r *reader, rows []row) (ends bool) {
	for i := range rows {
		switch row := &rows[i]; {
		case row.cursor == "":
		case row.cursor != t.reached.cursor || row.key != "":
			t.reached = r.at(row.cursor, row.key)
		}
	}
	return t.late && t.src.Compare(t.reached.cursor, t.began) > 0
}

const (
	// standing is the lag from which a horizon counts as standing still.
	standing = time.Minute
	// fullReadNoted is how often a stream without changes notes its full reads.
	fullReadNoted = 10 * time.Minute
)

// newTimeline decides where the rows of this poll begin. While a long transaction
// holds the horizon, more and more rows lie above the low-water mark. To read them all
// in every turn would take longer than the turn, and to leave them unread would lose the
// late ones. So a light poll reads only new rows, and moves no low-water mark; and the
// further the horizon is behind, the rarer are the full reads.
func newTimeline(j *journal) *timeline {
	t := &timeline{span: span{journal: j}, began: j.next.Low}
	switch {
	case j.isLight():
		t.light, t.began = true, j.next.Newest
	case j.horizon.Lag > standing:
		at := j.at // A pointer into the poll would keep all of it.
		j.tried.Store(&at)
	}
	t.from = position{cursor: t.began}
	return t
}

// isLight reports whether a light poll is due. It does not believe a full read in the
// future, because the clocks of two nodes may differ.
func (j *journal) isLight() bool {
	last := j.cursor.Marks.RereadAt
	// A full read that this node could not finish would not be finished now either, and
	// new rows would never be seen.
	if tried := j.tried.Load(); tried != nil && tried.After(last) {
		last = *tried
	}
	lag, since := j.horizon.Lag, j.at.Sub(last)
	return lag > standing && since >= 0 && since < lag/4
}

// noteFullRead notes a full read once the poll has come past the newest row of earlier
// ones, or to the end. If it breaks off after that, the next poll is light and goes on,
// instead of beginning at the mark and getting no further.
func (t *timeline) noteFullRead(done bool) {
	if t == nil || t.light {
		return
	}
	if done || t.src.Compare(t.next.Newest, t.start.Newest) > 0 {
		t.next.Marks.RereadAt = t.at.UTC().Truncate(time.Microsecond)
	}
}

// fullReadMatters reports whether a full read is worth a commit of its own.
func (j *journal) fullReadMatters() bool {
	last := j.cursor.Marks.RereadAt
	return !j.next.Marks.RereadAt.Equal(last) &&
		(j.horizon.Lag > standing || !last.IsZero() && j.next.Marks.RereadAt.Sub(last) >= fullReadNoted)
}

// What follows is for more rows of one timestamp than a poll has time for, as a bulk
// UPDATE leaves them. No place within a timestamp is kept between two polls, because
// rows below it may still appear. So a poll that begins with the first of them and is not
// past them when its time is over goes on until it is: the next one would get no
// further. Its statements are bounded, so that it holds no lock of the source for longer
// than others, and its commits show that it is not stuck.

// mayGoOn reports whether a poll that its time has ended is within the rows that share
// the timestamp at which it began, and can go on there.
func (t *timeline) mayGoOn(err error) bool {
	return t != nil && errors.Is(err, ErrPollTime) && !t.late && t.began != "" && t.reached.cursor == t.began && t.reached.key != ""
}
