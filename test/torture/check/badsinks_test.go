package check_test

import (
	"slices"

	"github.com/observerd/observerd/test/torture/check"
	"github.com/observerd/observerd/test/torture/history"
)

// badSinks are faults between the log and a sink.
func badSinks() []bad {
	var all []bad
	for _, sink := range []string{"file", "stdout"} {
		any := func(b *breaker) *history.Event {
			return pick(b, b.Delivered[sink], func(int) bool { return true })
		}
		all = append(all,
			bad{sink + " lost an event", check.SinkLost, true, func(b *breaker) {
				if i := place(b, b.Delivered[sink], func(int) bool { return true }); i >= 0 {
					id := b.Delivered[sink][i].ID
					b.Delivered[sink] = slices.DeleteFunc(b.Delivered[sink], func(e history.Event) bool { return e.ID == id })
				}
			}},
			bad{sink + " has what the log has not", check.SinkUnexpected, false, func(b *breaker) { any(b).ID = "other" }},
			bad{sink + " says something else of a row", check.SinkUnexpected, false, func(b *breaker) { any(b).N += 7 }},
			bad{sink + " has an event of another stream", check.SinkUnexpected, false, func(b *breaker) { any(b).Stream = "other" }},
			bad{sink + " mixes up the order", check.SinkReordered, true, func(b *breaker) {
				b.mixUp(sink)
			}},
		)
	}
	return append(all,
		bad{"file has an event twice", check.SinkDuplicated, true, func(b *breaker) {
			e := *pick(b, b.Delivered["file"], func(int) bool { return true })
			b.Delivered["file"] = append(b.Delivered["file"], e)
		}},
		bad{"a log tells of a row", check.Disclosed, true, func(b *breaker) {
			b.Disclosures = append(slices.Clone(b.Disclosures), history.Disclosure{Where: "a/a-001.log:17", Text: "the row c4n4ry"})
		}},
		bad{"file has nothing", check.SinkLost, true, func(b *breaker) { b.Delivered["file"] = nil }},
	)
}

// mixUp lets an event and the next other one of its stream change places.
func (b *breaker) mixUp(sink string) {
	events := b.Delivered[sink]
	count := make(map[string]int)
	for _, e := range events {
		count[e.ID]++
	}
	partner := func(i int) int {
		for j := i + 1; j < len(events); j++ {
			if events[j].Stream == events[i].Stream && events[j].ID != events[i].ID {
				return j
			}
		}
		return -1
	}
	i := place(b, events, func(i int) bool {
		j := partner(i)
		return j >= 0 && count[events[i].ID] == 1 && count[events[j].ID] == 1
	})
	if i >= 0 {
		j := partner(i)
		events[i], events[j] = events[j], events[i]
	}
}
