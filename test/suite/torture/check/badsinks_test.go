package check_test

import (
	"slices"

	"github.com/observerd/observerd/test/suite/torture/check"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// badSinks are faults between the log and the sink.
func badSinks() []bad {
	any := func(b *breaker) *history.Event {
		return pick(b, b.Delivered, func(int) bool { return true })
	}
	return []bad{
		{"the sink lost an event", check.SinkLost, true, func(b *breaker) {
			b.Delivered = remove(b, b.Delivered, func(int) bool { return true })
		}},
		{"the sink has nothing", check.SinkLost, true, func(b *breaker) { b.Delivered = nil }},
		{"the sink has what the log has not", check.SinkUnexpected, false, func(b *breaker) { any(b).ID = "other" }},
		{"the sink says something else of a row", check.SinkUnexpected, false, func(b *breaker) { any(b).N += 7 }},
		{"the sink has an event of another stream", check.SinkUnexpected, false, func(b *breaker) { any(b).Stream = "other" }},
		{"the sink mixes up the order", check.SinkReordered, true, (*breaker).mixUp},
		{"the sink has an event twice", check.SinkDuplicated, true, func(b *breaker) { b.Delivered = append(b.Delivered, *any(b)) }},
		{"a log tells of a row", check.Disclosed, true, func(b *breaker) {
			b.Disclosures = append(slices.Clone(b.Disclosures), history.Disclosure{Where: "a/a-001.log:17", Text: "the row c4n4ry"})
		}},
	}
}

// mixUp lets an event and the next one of its stream change places.
func (b *breaker) mixUp() {
	partner := func(i int) int {
		j := slices.IndexFunc(b.Delivered[i+1:], func(e history.Event) bool { return e.Stream == b.Delivered[i].Stream })
		return i + 1 + j
	}
	if i := place(b, b.Delivered, func(i int) bool { return partner(i) > i }); i >= 0 {
		b.Delivered[i], b.Delivered[partner(i)] = b.Delivered[partner(i)], b.Delivered[i]
	}
}
