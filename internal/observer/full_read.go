package observer

import "time"

const (
	// standing is the lag from which on a horizon counts as standing still.
	standing = time.Minute
	// fullReadNoted is the age at which a stream in which nothing happens notes
	// a full read all the same, so that it knows about when the last one was.
	fullReadNoted = 10 * time.Minute
)

// newTimeline decides where the rows of this poll begin. A horizon that stands
// still, because of somebody's long transaction, leaves more and more rows
// above the low-water mark. To read them all in every turn would cost more than
// the turn has, and to leave them unread would lose the late ones. So a light
// poll reads what is new, and moves no low-water mark; and the further the
// horizon is behind, the rarer are the full reads.
func newTimeline(j *journal) *timeline {
	t := &timeline{span: span{journal: j, limit: j.Observer.limit.get()}, began: j.next.low}
	switch {
	case j.isLight():
		t.light, t.began = true, j.next.newest
	case j.horizon.Lag > standing:
		at := j.at // A pointer into the poll would keep all of it.
		j.tried.Store(&at)
	}
	t.from = position{cursor: t.began}
	return t
}

// isLight takes a full read that never was for one of long ago, and does not
// believe one of the future: the clocks of two nodes may differ.
func (j *journal) isLight() bool {
	last := j.cursor.RereadAt
	// One that this node could not finish would not be finished now either, and
	// what is new would never be seen.
	if tried := j.tried.Load(); tried != nil && tried.After(last) {
		last = *tried
	}
	lag, since := j.horizon.Lag, j.at.Sub(last)
	return lag > standing && since >= 0 && since < lag/4
}

// noteFullRead notes that all rows above the low-water mark that were ever read
// were read by this poll: it has come past the newest of them, or to the end. A
// poll that breaks off after that leaves the next one to begin where it was,
// instead of at the mark, where it would get no further.
func (t *timeline) noteFullRead(done bool) {
	if t == nil || t.light {
		return
	}
	if done || t.src.Compare(t.next.newest, t.start.Newest) > 0 {
		t.next.rereadAt = t.at
	}
}

// fullReadMatters says that a full read is worth a commit of its own.
func (j *journal) fullReadMatters() bool {
	last := j.cursor.RereadAt
	if j.next.rereadAt.Equal(last) {
		return false
	}
	return j.horizon.Lag > standing || !last.IsZero() && j.next.rereadAt.Sub(last) >= fullReadNoted
}
