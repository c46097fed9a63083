package observer

import "fmt"

// poisonFloor is how many poison rows a chunk may always have: in a handful of
// rows, half of them bad says nothing about the schema.
const poisonFloor = 10

func (c *comparison) poison(r *row, reason string) {
	if c.readBefore(r) {
		c.deadAgain++
	}
	c.chunk.Dead = append(c.chunk.Dead, Dead{Key: r.key, Reason: reason, Raw: r.data})
}

// checkPoison tells bad rows from a schema that has changed. Rows that an
// earlier poll has read were judged then: a few old poison rows at the
// low-water mark, or without a timestamp, must not look like most of a chunk
// because nothing else is new. They are weighed against all the rows there are.
func (c *comparison) checkPoison(rows []row) error {
	if len(c.chunk.Dead) < poisonFloor {
		return nil
	}
	again := 0
	for i := range rows {
		if c.readBefore(&rows[i]) {
			again++
		}
	}
	freshDead, freshRows := len(c.chunk.Dead)-c.deadAgain, len(rows)-again
	if mostly(freshDead, int64(freshRows)) || mostly(c.deadAgain, int64(len(rows))+c.start.Rows) {
		reason, n := commonReason(c.chunk.Dead)
		return fmt.Errorf("%w: %d of %d, and %d of those with %q: that is a schema change, not bad rows",
			ErrMostlyPoison, len(c.chunk.Dead), len(rows), n, reason)
	}
	return nil
}

// looksMostlyPoison judges rows by what the source says of them alone, before
// they are compared. However few they are, their majority counts: more rows may
// follow that are like them.
func (p *poll) looksMostlyPoison(rows []row) bool {
	dead, fresh := 0, 0
	for i := range rows {
		if p.readBefore(&rows[i]) {
			continue
		}
		fresh++
		if rows[i].err != nil {
			dead++
		}
	}
	return 2*dead > fresh
}

func mostly(dead int, of int64) bool { return dead >= poisonFloor && 2*int64(dead) > of }

// readBefore says whether an earlier poll may have read the row as well. A
// read that always begins at the beginning has its old and its new rows in
// the same proportion every time, so there it makes no difference. A row in the
// future is read by every poll until its time has come. A sweep reads only the
// rows again at which its last step ended.
func (p *poll) readBefore(r *row) bool {
	switch {
	case p.spec.readsAll():
		return false
	case p.sweep != nil:
		return r.cursor == p.sweep.start
	}
	return r.cursor == "" || p.isFuture(r.cursor) || p.src.Compare(r.cursor, p.start.Newest) <= 0
}

// commonReason returns the most frequent reason, the first of equals, and how
// often it occurs.
func commonReason(dead []Dead) (reason string, n int) {
	counts := make(map[string]int)
	for _, d := range dead {
		counts[d.Reason]++
	}
	for _, d := range dead {
		if counts[d.Reason] > n {
			reason, n = d.Reason, counts[d.Reason]
		}
	}
	return reason, n
}
