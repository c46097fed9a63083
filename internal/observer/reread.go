package observer

import "time"

const (
	// standing is the lag from which on a horizon counts as standing still.
	standing = time.Minute
	// rereadNoted is the age at which a stream in which nothing happens notes
	// a full read all the same, so that it knows about when the last one was.
	rereadNoted = 10 * time.Minute
)

// planReading decides where the rows of this poll begin. A horizon that stands
// still, because of somebody's long transaction, leaves more and more rows
// above the low-water mark. To read them all in every turn would cost more than
// the turn has, and to leave them unread would lose the late ones. So a light
// poll reads what is new, and moves no low-water mark; and the further the
// horizon is behind, the rarer are the full reads.
func (p *poll) planReading() {
	p.limit, p.began = p.Observer.limit.get(), p.next.low
	switch {
	case p.spec.readsAll():
		p.limit, p.began = 0, ""
	case p.isLight():
		p.light, p.began = true, p.next.newest
	case p.horizon.Lag > standing:
		at := p.at // A pointer into the poll would keep all of it.
		p.tried.Store(&at)
	}
	p.from = position{cursor: p.began}
}

// isLight takes a full read that never was for one of long ago, and does not
// believe one of the future: the clocks of two nodes may differ.
func (p *poll) isLight() bool {
	last := p.cursor.RereadAt
	// One that this node could not finish would not be finished now either, and
	// what is new would never be seen.
	if tried := p.tried.Load(); tried != nil && tried.After(last) {
		last = *tried
	}
	lag, since := p.horizon.Lag, p.at.Sub(last)
	return lag > standing && since >= 0 && since < lag/4
}

// noteReread notes that all rows above the low-water mark that were ever read
// were read by this poll: it has come past the newest of them, or to the end. A
// poll that breaks off after that leaves the next one to begin where it was,
// instead of at the mark, where it would get no further.
func (p *poll) noteReread() {
	if p.sweep != nil || p.light || p.spec.readsAll() {
		return
	}
	if p.complete || p.src.Compare(p.next.newest, p.start.Newest) > 0 {
		p.next.rereadAt = p.at
	}
}

// rereadMatters says that a full read is worth a commit of its own.
func (p *poll) rereadMatters() bool {
	last := p.cursor.RereadAt
	if p.next.rereadAt.Equal(last) {
		return false
	}
	return p.horizon.Lag > standing || !last.IsZero() && p.next.rereadAt.Sub(last) >= rereadNoted
}
