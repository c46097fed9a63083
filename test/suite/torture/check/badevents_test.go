package check_test

import (
	"github.com/observerd/observerd/test/suite/torture/check"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// badEvents are faults within the log.
func badEvents() []bad {
	return []bad{
		{"two versions of a row change places", check.Reordered, true, func(b *breaker) {
			first, second := b.twins("change", func(first, second history.Event) bool { return second.N > first.N && !b.last(second) })
			first.N, second.N = second.N, first.N
			b.redeliver(first, second)
		}},
		{"a number of the stream is left out", check.HalfBatch, false, func(b *breaker) {
			b.Events = remove(b, b.Events, func(i int) bool { return b.Events[i].Seq > 1 })
		}},
		{"the end of the log is missing", check.HalfBatch, false, func(b *breaker) {
			last := make(map[string]int64)
			for _, e := range b.Events {
				last[e.Stream] = e.Seq
			}
			b.Events = remove(b, b.Events, func(i int) bool { return b.Events[i].Seq == last[b.Events[i].Stream] })
		}},
		{"a version number is left out", check.Gap, true, func(b *breaker) {
			e := b.event(b.last)
			e.Version++
			b.redeliver(e)
		}},
		{"a row changes before it is new", check.WrongChange, true, func(b *breaker) {
			e := b.event(func(e history.Event) bool { return e.Version == 1 })
			e.Change = "changed"
			b.redeliver(e)
		}},
		{"a row is new twice", check.WrongChange, true, func(b *breaker) {
			e := b.event(func(e history.Event) bool { return e.Change == "changed" })
			e.Change = "new"
			b.redeliver(e)
		}},
		{"a change that nobody knows", check.WrongChange, true, func(b *breaker) {
			e := b.event(func(e history.Event) bool { return e.Change == "changed" })
			e.Change = "renamed"
			b.redeliver(e)
		}},
		{"gone where nobody looks for it", check.WrongChange, false, func(b *breaker) {
			b.event(func(e history.Event) bool { return e.Stream == "change" }).Change = "gone"
		}},
		{"an event is from another transaction", check.HalfBatch, true, func(b *breaker) {
			b.event(func(history.Event) bool { return true }).Xid = "0"
		}},
		{"an event is from an earlier commit", check.HalfBatch, true, func(b *breaker) {
			i := place(b, b.Events, func(i int) bool {
				return i > 0 && b.Events[i].Stream == b.Events[i-1].Stream && b.Events[i].Xid != b.Events[i-1].Xid
			})
			if i > 0 {
				b.Events[i].Xid = b.Events[i-1].Xid
			}
		}},
		{"a commit lacks its step", check.HalfBatch, false, func(b *breaker) {
			b.Steps = remove(b, b.Steps, func(i int) bool { return isCommit(b.Steps[i]) })
		}},
		{"more rows go than may, and nobody was asked", check.MassGone, true, func(b *breaker) {
			b.Acts = remove(b, b.Acts, func(i int) bool { return b.Acts[i].Action == "accept" })
		}},
		{"more rows go than were accepted", check.MassGone, true, func(b *breaker) {
			b.step(func(s history.Step) bool { return s.Accepted > 0 }).Accepted--
		}},
		{"an event has other columns than its definition", check.WrongDefinition, true, func(b *breaker) {
			i := place(b, b.Events, func(i int) bool {
				return i > 0 && b.Events[i].Xid == b.Events[i-1].Xid && b.Events[i].N > 0 && b.Events[i-1].N > 0
			})
			if i > 0 {
				b.Events[i].Shape = "n,price"
				b.redeliver(&b.Events[i])
			}
		}},
		{"a step counts more events than there are", check.HalfBatch, false, func(b *breaker) {
			b.step(isCommit).NewSeq++
		}},
	}
}

// redeliver lets the sink have an event as the log has it now.
func (b *breaker) redeliver(changed ...*history.Event) {
	for _, e := range changed {
		for i := range b.Delivered {
			if o := &b.Delivered[i]; o.Stream == e.Stream && o.Seq == e.Seq {
				*o = *e
				o.Xid = ""
			}
		}
	}
}
