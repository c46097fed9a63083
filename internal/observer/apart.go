package observer

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// What follows is for the rows that have no place in the order of timestamps: those
// without one, and those with one of another form. No mark tells which of them were
// read, so every poll reads them; and where there are more than it has time for, it
// goes on by their keys where the last one has ended, as a [Generation] does.
//
// Neither these rows nor the others starve: a poll has a tenth of its time, and of the
// rows that may change, for these, and the rest is for the others. Where no read can
// go on by the key, one statement reads all of them, as long as rows arrive, and the
// others have their time after that.

// shares is how many times the share of these rows makes a poll.
const shares = 10

// apart is how far a poll is with them.
type apart struct {
	// parts are left to be read, key is where the first goes on, and order that in
	// which it was reached; empty for its beginning.
	parts      []Part
	key, order string
	// until is when the share of the poll's time is over; zero for never. cut says that
	// the last statement was ended by it.
	until time.Time
	cut   bool
	// more says that some were left to the next poll, chunks how many were committed.
	more   bool
	chunks int64
}

// readsApart reports whether what is read is no part of the order of timestamps.
func (p *poll) readsApart() bool { return p.part == PartUndated || p.part == PartStray }

func (p *poll) partsApart() (parts []Part) {
	if p.spec.readsAll() {
		return nil
	}
	if p.horizon.Undated {
		parts = append(parts, PartUndated)
	}
	if p.next.form != "" {
		parts = append(parts, PartStray)
	}
	return parts
}

// apartReading begins what is remembered of such a reading, and tells it from those of
// an observer that reads all rows.
const apartReading = "apart "

// reading identifies a part, all but the order of its keys.
func (p *poll) reading(part Part) string {
	return fmt.Sprint(apartReading, int(part), " ", p.fingerprint, " ", p.next.form, " ", p.next.identity, " ", p.cursor.Epoch, " ")
}

// readApart reads as many of these rows as there is time for. It returns what the
// others have of the time that was left: all but the share of these at least, where a
// statement that no other can go on with has taken more.
func (p *poll) readApart(ctx context.Context, left time.Duration) (time.Duration, error) {
	began := time.Now()
	ctx, stop := p.whileRowsArrive(ctx)
	defer stop()
	most := p.most
	if most > 0 {
		p.most = p.changed + max(1, most/shares)
	}
	err := p.goOnApart(ctx)
	p.part, p.full = PartDated, false
	if most > 0 {
		p.most = max(most, p.changed+1)
	}
	p.apart.more, p.apart.chunks = len(p.apart.parts) > 0, p.stats.Chunks
	return left - min(time.Since(began), left/shares), err
}

// goOnApart begins where the last poll has ended, and stores where this one has.
func (p *poll) goOnApart(ctx context.Context) error {
	a := &p.apart
	last, err := p.st.Generation(ctx, p.cursor)
	if err != nil {
		return failed(ctx, "read how far the last poll has come", err)
	}
	stored := last.Reading != "" && last.FinishedAt.IsZero()
	for i, part := range a.parts {
		if order, found := strings.CutPrefix(last.Reading, p.reading(part)); found && stored {
			a.parts, a.key, a.order = a.parts[i:], last.Key, order
			break
		}
	}
	if p.spec.PollTime > 0 {
		a.until = time.Now().Add(p.spec.PollTime / shares)
	}
	if err := p.readParts(ctx); err != nil {
		return err
	}
	return p.keepApart(ctx, stored)
}

// keepApart stores where the next poll goes on, or that nothing is left, if a place is
// stored.
func (p *poll) keepApart(ctx context.Context, stored bool) error {
	a, g := &p.apart, Generation{StartedAt: p.at}
	switch {
	case len(a.parts) > 0 && a.key != "" && a.order != "":
		g.Reading, g.Key = p.reading(a.parts[0])+a.order, a.key
	case stored:
		g.Reading, g.FinishedAt = apartReading, p.spec.Now()
	default:
		return nil
	}
	ch := p.newChunk()
	ch.Generation = &g
	return p.commit(ctx, ch)
}

func (p *poll) readParts(ctx context.Context) error {
	a := &p.apart
	for len(a.parts) > 0 {
		from := a.key
		p.part, a.cut = a.parts[0], false
		err := p.readPart(ctx)
		p.seen = bitmap{} // A row that is read once more is no second row of its key.
		switch {
		case from != "" && ClassOf(err) == ClassRetry:
			a.key, a.order = "", "" // The keys may have another order by now.
		case err != nil:
			return err
		case p.full, a.cut && !a.until.IsZero() && !time.Now().Before(a.until):
			return nil
		case !a.cut:
			a.parts, a.key, a.order = a.parts[1:], "", ""
		}
	}
	return nil
}

// reach notes the last row that was compared. Rows whose key cannot be read are read
// again, if the reading goes on.
func (a *apart) reach(rows []row) {
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].key != "" {
			a.key = rows[i].key
			return
		}
	}
}
