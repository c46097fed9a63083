package observer

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// What follows is for the rows that have no place in the order of timestamps: those
// without one, and those with one of another form. No mark tells which of them were
// read, so every poll reads them. If there are too many for one, the next goes on by
// their keys, as a [Generation] does.
//
// They have a tenth of a poll's time, and of the rows that may change, so that neither
// they nor the others starve. If no read can go on by the key, one statement reads all of
// them, as long as rows arrive, and the others have their time after that.

// apart is the reading of these rows, part by part.
type apart struct {
	*journal
	// parts are left to be read, key is where the first goes on, and order that in
	// which it was reached; empty for its beginning.
	parts      []Part
	key, order string
	// until is when the share of the poll's time is over; zero for never.
	until time.Time
	// more says that rows were left to the next poll, chunks how many commits the poll
	// had made by the end of this reading.
	more   bool
	chunks int64
}

func (a *apart) statement() (Query, Range) {
	return a.query(), Range{Part: a.parts[0], Order: a.order, Key: a.key}
}

func (a *apart) lasts(context.Context) time.Duration {
	if a.until.IsZero() {
		return a.spec.StatementTime
	}
	return min(a.spec.StatementTime, time.Until(a.until))
}

func (a *apart) canCut(r *reader, _ *Row) bool { return r.order != "" && r.hasMoved() }

func (a *apart) reach([]row) {}

func (a *apart) settle(r *reader, rows []row) (ends bool) {
	a.key, a.order = cmp.Or(lastKey(rows), a.key), r.order
	return false
}

func (a *apart) end(_ context.Context, r *reader, _ *bitmap) outcome {
	if r.cut {
		return unfinished
	}
	return complete
}

func (a *apart) keep(context.Context, time.Duration) error { return nil }

// all are the parts that the source may have.
func (a *apart) all() (parts []Part) {
	if a.spec.readsAll() {
		return nil
	}
	if a.horizon.Undated {
		parts = append(parts, PartUndated)
	}
	if a.next.Marks.Form != "" {
		parts = append(parts, PartStray)
	}
	return parts
}

// apartReading begins [Generation.Reading] of these rows.
const apartReading = "apart "

// id identifies the reading of a part, all but the order of its keys.
func (a *apart) id(part Part) string {
	return fmt.Sprint(apartReading, int(part), " ", a.fingerprint, " ", a.next.Marks.Form, " ", a.next.Marks.Identity, " ", a.cursor.Epoch, " ")
}

// read reads as many of these rows as there is time for. It returns the time for
// the others: what is left, or if one statement took more than its share, all but that.
func (a *apart) read(ctx context.Context, c *comparer, left time.Duration) (time.Duration, error) {
	began := time.Now()
	ctx, stop := a.spec.whileRowsArrive(ctx, &c.arrived)
	defer stop()
	budget := &c.budget
	most := budget.most
	if most > 0 {
		budget.most = budget.changed + max(1, most/shares)
	}
	err := a.readFromPlace(ctx, c)
	if most > 0 {
		budget.most = max(most, budget.changed+1)
	}
	a.more, a.chunks = len(a.parts) > 0, a.stats.Chunks
	return left - min(time.Since(began), left/shares), err
}

// readFromPlace begins where the last poll has ended, and stores where this one has.
func (a *apart) readFromPlace(ctx context.Context, c *comparer) error {
	last, err := a.st.Generation(ctx, a.cursor)
	if err != nil {
		return failed(ctx, "read how far the last poll has come", err)
	}
	stored := last.Reading != "" && last.FinishedAt.IsZero()
	if stored {
		a.goOn(last)
	}
	if a.spec.PollTime > 0 {
		a.until = time.Now().Add(a.spec.PollTime / shares)
	}
	if err := a.readParts(ctx, c); err != nil {
		return err
	}
	return a.keepPlace(ctx, stored)
}

// goOn begins where the last poll has ended, if it was with one of the parts.
func (a *apart) goOn(last Generation) {
	for i, part := range a.parts {
		if order, found := strings.CutPrefix(last.Reading, a.id(part)); found {
			a.parts, a.key, a.order = a.parts[i:], last.Key, order
			return
		}
	}
}

// keepPlace stores where the next poll goes on, or that nothing is left, if a place is
// stored.
func (a *apart) keepPlace(ctx context.Context, stored bool) error {
	g := Generation{StartedAt: a.at}
	switch {
	case len(a.parts) > 0 && a.key != "" && a.order != "":
		g.Reading, g.Key = a.id(a.parts[0])+a.order, a.key
	case stored:
		g.Reading, g.FinishedAt = apartReading, a.spec.Now()
	default:
		return nil
	}
	return a.commit(ctx, Chunk{Generation: &g})
}

func (a *apart) readParts(ctx context.Context, c *comparer) error {
	for len(a.parts) > 0 {
		from := a.key
		how, err := c.readStatement(ctx, a)
		c.seen = bitmap{} // A row that is read again is no second row of its key.
		switch {
		case from != "" && ClassOf(err) == ClassRetry:
			a.key, a.order = "", "" // The keys may have another order by now.
		case err != nil:
			return err
		case how == complete:
			a.parts, a.key, a.order = a.parts[1:], "", ""
		case how == full, !a.until.IsZero() && !time.Now().Before(a.until):
			return nil
		}
	}
	return nil
}
