package check_test

import (
	"github.com/observerd/observerd/test/suite/torture/check"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// badRows are faults between the source and the log.
func badRows() []bad {
	return []bad{
		{"a row is lost", check.Lost, true, func(b *breaker) {
			b.Writes = append(b.Writes, history.Write{Stream: []string{"new", "change", "snapshot"}[b.draw(3)], Key: "late", N: 1})
		}},
		{"the last change is lost", check.Lost, true, func(b *breaker) { b.appended(b.newest("change", live), false) }},
		{"the last state is lost", check.Lost, true, func(b *breaker) { b.appended(b.newest("snapshot", live), false) }},
		{"an end is lost", check.Lost, true, func(b *breaker) { b.appended(b.newest("snapshot", live), true) }},
		{"a return is lost", check.Lost, true, func(b *breaker) {
			b.appended(b.newest("snapshot", func(w history.Write) bool { return w.Gone }), false)
		}},
		{"a row that was forgotten is not told again", check.Lost, false, func(b *breaker) {
			forgotten := b.newest("new", func(w history.Write) bool { return !w.Gone && b.toldTwice(w) })
			for i := len(b.Events) - 1; i >= 0; i-- {
				if e := &b.Events[i]; e.Stream == "new" && e.Subject == forgotten.Key {
					e.Subject = "other"
					break
				}
			}
		}},
		{"an event id is there twice", check.Duplicated, false, func(b *breaker) {
			first, second := b.twins("change", both)
			second.ID = first.ID
		}},
		{"a version has two events", check.Duplicated, false, func(b *breaker) {
			first, second := b.twins("change", b.alike)
			second.N = first.N
		}},
		{"a key is new twice", check.Duplicated, false, func(b *breaker) {
			i := place(b, b.Events, func(i int) bool { return b.Events[i].Stream == "new" && b.sameEpoch(i) != nil })
			if i >= 0 {
				b.Events[i].Subject = b.sameEpoch(i).Subject
			}
		}},
		{"a version number is repeated", check.Duplicated, true, func(b *breaker) {
			first, second := b.twins("change", func(_, second history.Event) bool { return b.last(second) })
			second.Version = first.Version
			b.redeliver(second)
		}},
		{"a number of the stream is there twice", check.Duplicated, false, func(b *breaker) {
			e := b.event(func(e history.Event) bool { return e.Seq > 1 })
			e.Seq--
		}},
		{"an event of a row that never was", check.Unexpected, false, func(b *breaker) {
			b.event(func(history.Event) bool { return true }).Subject = "ghost"
		}},
		{"an event of a version that was rolled back", check.Unexpected, false, func(b *breaker) {
			b.Writes = remove(b, b.Writes, func(i int) bool {
				w := b.Writes[i]
				return w == *b.newestOf(w) && w.N > 1 && !w.Gone && b.hasVersion(w)
			})
		}},
		{"an event with a version to come", check.Unexpected, false, func(b *breaker) {
			b.event(func(e history.Event) bool { return e.N > 0 }).N = 1000
		}},
		{"an event without a version", check.Unexpected, false, func(b *breaker) {
			b.event(func(e history.Event) bool { return e.N > 0 }).N = 0
		}},
		{"data of a row that was gone", check.Unexpected, false, func(b *breaker) {
			first, second := b.twins("snapshot", func(_, second history.Event) bool { return second.Change == "gone" })
			second.N = first.N + 1
			second.Change = "changed"
			for i := range b.Writes {
				if w := &b.Writes[i]; w.Stream == second.Stream && w.Key == second.Subject && w.N == second.N {
					w.Gone = true
				}
			}
		}},
		{"gone, but it never was", check.Unexpected, false, func(b *breaker) {
			_, second := b.twins("snapshot", func(_, second history.Event) bool { return second.N > 0 && b.goneBefore(second) })
			second.Change, second.N = "gone", 0
		}},
		{"an event of a stream that nobody observes", check.Unexpected, false, func(b *breaker) {
			b.event(func(history.Event) bool { return true }).Stream = "other"
		}},
	}
}

// goneBefore reports whether the row was never gone up to the next event's version.
func (b *breaker) goneBefore(e history.Event) bool {
	for _, w := range b.Writes {
		if w.Stream == e.Stream && w.Key == e.Subject && w.Gone {
			return false
		}
	}
	return true
}

func (b *breaker) toldTwice(w history.Write) bool {
	n := 0
	for _, e := range b.Events {
		if e.Stream == w.Stream && e.Subject == w.Key {
			n++
		}
	}
	return n > 1
}

// alike reports whether the stream was defined in one way from one event to another.
func (b *breaker) alike(first, second history.Event) bool {
	definition := ""
	for _, s := range b.Steps {
		if s.Stream == first.Stream && s.Definition != definition {
			if definition = s.Definition; first.Seq <= s.OldSeq && s.OldSeq < second.Seq {
				return false
			}
		}
	}
	return true
}

// sameEpoch is an earlier event of another key in the commits since the last
// reset; nil for none.
func (b *breaker) sameEpoch(i int) *history.Event {
	e := b.Events[i]
	for j := i - 1; j >= 0; j-- {
		if o := &b.Events[j]; o.Stream == e.Stream && o.Subject != e.Subject && o.Xid == e.Xid {
			return o
		}
	}
	return nil
}

// last reports whether no event of the row follows.
func (b *breaker) last(e history.Event) bool {
	for _, o := range b.Events {
		if o.Stream == e.Stream && o.Subject == e.Subject && o.Seq > e.Seq {
			return false
		}
	}
	return true
}

func (b *breaker) newestOf(w history.Write) *history.Write {
	last := w
	for _, o := range b.Writes {
		if o.Stream == w.Stream && o.Key == w.Key && o.N > last.N {
			last = o
		}
	}
	return &last
}

func (b *breaker) hasVersion(w history.Write) bool {
	for _, e := range b.Events {
		if e.Stream == w.Stream && e.Subject == w.Key && e.N == w.N {
			return true
		}
	}
	return false
}
