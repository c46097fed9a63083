package liveness

import "time"

// detector decides which process is dead from a row of looks. It judges what it is told by
// an id, a lease or a node, each with a mark that changes with every sign of
// life, such as a renewal.
type detector struct {
	// absence is how long an id must have been absent, in every look, under one
	// mark.
	absence time.Duration
	// gap is the most that may lie between two looks of one row: what happened
	// in a longer one was not seen, so the row begins anew.
	gap time.Duration

	suspects map[string]suspect
	last     time.Time // the end of the last look
}

type suspect struct {
	mark  string
	since time.Time // the end of the look that first found it absent
}

// look takes in the result of a look that lasted from began to ended: the ids
// that are absent, and their marks. It returns those that are dead.
func (d *detector) look(began, ended time.Time, absent map[string]string) (dead map[string]bool) {
	if began.Sub(d.last) > d.gap {
		d.suspects = nil
	}
	d.last = ended
	dead = make(map[string]bool)
	suspects := make(map[string]suspect, len(absent))
	for id, mark := range absent {
		s, known := d.suspects[id]
		switch {
		case !known || s.mark != mark:
			s = suspect{mark: mark, since: ended}
		case began.Sub(s.since) >= d.absence:
			dead[id] = true
		}
		suspects[id] = s
	}
	d.suspects = suspects
	return dead
}

// reset forgets all suspicions.
func (d *detector) reset() { d.suspects = nil }

// next is when the next suspect can be judged; false when there is none that
// waits.
func (d *detector) next(now time.Time) (at time.Time, ok bool) {
	for _, s := range d.suspects {
		due := s.since.Add(d.absence)
		if due.After(now) && (!ok || due.Before(at)) {
			at, ok = due, true
		}
	}
	return at, ok
}
