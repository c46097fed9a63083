package check_test

import (
	"time"

	"github.com/observerd/observerd/test/suite/torture/check"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// badCursors are faults of the steps.
func badCursors() []bad {
	return []bad{
		{"a definition takes the place of a later one", check.WrongDefinition, true, func(b *breaker) {
			former := b.step(func(s history.Step) bool { return isCommit(s) && b.outdated(s) })
			for s, was := former, former.Definition; s != nil && s.Definition == was; s = b.neighbour(s, 1) {
				s.Definition = "the former"
			}
		}},
		{"the mark moves back", check.CursorBackwards, true, func(b *breaker) {
			b.lower(b.step(func(s history.Step) bool { return isCommit(s) && s.OldLow != "" }))
		}},
		{"a pause moves the mark back", check.CursorBackwards, false, func(b *breaker) {
			b.lower(b.step(func(s history.Step) bool { return b.act(s) == "pause" && s.OldLow != "" }))
		}},
		{"the sequence moves back", check.CursorBackwards, false, func(b *breaker) {
			s := b.step(func(s history.Step) bool { return s.Node != "" && s.NewSeq == s.OldSeq && s.OldSeq > 0 })
			s.NewSeq--
		}},
		{"the version moves back", check.CursorBackwards, false, func(b *breaker) {
			s := b.step(func(s history.Step) bool { return s.OldVersion > 0 })
			s.NewVersion = s.OldVersion - 1
		}},
		{"the version jumps", check.CursorUnlinked, false, func(b *breaker) {
			s := b.step(isCommit)
			s.NewVersion++
		}},
		{"a step is missing", check.CursorUnlinked, false, func(b *breaker) {
			b.Steps = remove(b, b.Steps, func(i int) bool {
				s := b.Steps[i]
				return s.NewVersion > s.OldVersion && b.neighbour(&s, 1) != nil && s.OldVersion > 0
			})
		}},
		{"a step begins elsewhere", check.CursorUnlinked, true, func(b *breaker) {
			s := b.step(func(s history.Step) bool { return s.OldLow != "" && isCommit(s) })
			s.OldLow = ""
		}},
		{"the cursor moves under its version", check.CursorUnlinked, false, func(b *breaker) {
			s := b.step(func(s history.Step) bool {
				next := b.neighbour(&s, 1)
				return s.Node != "" && s.NewVersion == s.OldVersion && next != nil && next.NewLow > next.OldLow && next.OldLow != ""
			})
			if next := b.neighbour(s, 1); next != nil {
				s.NewLow = next.OldLow[:len(next.OldLow)-1] + "9"
				next.OldLow = s.NewLow
				next.NewLow = max(next.NewLow, s.NewLow)
				for after := b.neighbour(next, 1); after != nil && after.OldLow < s.NewLow && b.act(*after) != "reset"; after = b.neighbour(after, 1) {
					after.OldLow, after.NewLow = s.NewLow, max(after.NewLow, s.NewLow)
				}
			}
		}},
		{"a poll commits over a reset", check.StaleCursor, false, func(b *breaker) {
			b.beginBefore(func(other history.Step) bool { return b.act(other) == "reset" })
		}},
		{"a poll commits over another node's", check.StaleCursor, false, func(b *breaker) {
			b.beginBefore(func(other history.Step) bool { return other.Node != "" })
		}},
		{"a commit while the stream is paused", check.PausedCommit, false, func(b *breaker) {
			b.Acts = remove(b, b.Acts, func(i int) bool { return b.Acts[i].Action == "resume" && b.commitsAfter(i) })
		}},
	}
}

// commitsAfter reports whether a node commits between an act and the next one of
// its stream.
func (b *breaker) commitsAfter(i int) bool {
	act, next := b.Acts[i], time.Time{}
	for _, o := range b.Acts {
		if o.Subject == act.Subject && o.At.After(act.At) && (next.IsZero() || o.At.Before(next)) {
			next = o.At
		}
	}
	for _, s := range b.Steps {
		if s.Stream == act.Subject && isCommit(s) && s.At.After(act.At) && (next.IsZero() || s.At.Before(next)) {
			return true
		}
	}
	return false
}

// lower sets the mark back in a step and in all after it.
func (b *breaker) lower(s *history.Step) {
	if b.missing {
		return
	}
	const low = "2020-01-01 00:00:00.000000"
	old := s.NewLow
	s.NewLow = low
	for next := b.neighbour(s, 1); next != nil; next = b.neighbour(next, 1) {
		next.OldLow = low
		if next.NewLow != old {
			return
		}
		next.NewLow = low
	}
}

func (b *breaker) act(s history.Step) string {
	for _, act := range b.Acts {
		if act.Xid == s.Xid {
			return act.Action
		}
	}
	return ""
}

// beginBefore lets the read that a commit comes from begin before the step by
// another that precedes it.
func (b *breaker) beginBefore(fits func(other history.Step) bool) {
	s := b.step(func(s history.Step) bool {
		other := b.mover(s)
		return isCommit(s) && other != nil && other.Node != s.Node && fits(*other) && len(b.readsBetween(*other, s)) == 1
	})
	if b.missing {
		return
	}
	other := b.mover(*s)
	b.readsBetween(*other, *s)[0].Begin = other.At.Add(-10 * time.Millisecond)
}

// readsBetween are the reads by the node of the second step that began after
// the first.
func (b *breaker) readsBetween(first, second history.Step) (reads []*history.Poll) {
	for i := range b.Polls {
		p := &b.Polls[i]
		if p.Stream == second.Stream && p.Node == second.Node && p.Begin.After(first.At) && !p.Begin.After(second.At) {
			reads = append(reads, p)
		}
	}
	return reads
}

// mover is the step before this one that moved the version.
func (b *breaker) mover(s history.Step) *history.Step {
	for before := b.neighbour(&s, -1); before != nil; before = b.neighbour(before, -1) {
		if before.NewVersion != before.OldVersion {
			return before
		}
	}
	return nil
}

// outdated reports whether the step's process had begun, and loaded its
// configuration, long before the present definition was set.
func (b *breaker) outdated(s history.Step) bool {
	set := &s
	for before := set; before != nil && before.Definition == s.Definition; before = b.neighbour(set, -1) {
		set = before
	}
	var began time.Time
	for _, g := range b.Grants {
		for _, l := range b.Lives {
			if g.Term == s.HolderTerm && l.Node == s.Node && !l.Began.After(g.At) {
				began = l.Began
			}
		}
	}
	loaded := began.Add(ttl + 5*time.Second)
	for _, f := range b.Faults {
		if f.Kind == "stop" && f.Node == s.Node {
			loaded = loaded.Add(f.End.Sub(f.Begin))
		}
	}
	return set.ID != s.ID && loaded.Before(set.At)
}
