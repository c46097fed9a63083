package observer

import (
	"context"
	"time"
)

// position is a place in the order of timestamps, and of the keys of those that
// share one. key is empty where a read can only begin with the first of them, and
// order identifies the order of keys.
type position struct{ cursor, key, order string }

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

func (s *span) part() Part { return PartDated }

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

// timeline is the reading of a poll, from a mark to the newest row.
type timeline struct {
	span
	// light says that the poll does not begin at the low-water mark, and does not move it.
	light bool
	// began is the timestamp at which the first statement began, reached the last row
	// that was compared and settled. late says that the time of the poll is over, and
	// that it goes on.
	began   string
	reached position
	late    bool
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
