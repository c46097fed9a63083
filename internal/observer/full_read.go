package observer

import "time"

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
	if j.next.Marks.RereadAt.Equal(last) {
		return false
	}
	return j.horizon.Lag > standing || !last.IsZero() && j.next.Marks.RereadAt.Sub(last) >= fullReadNoted
}
