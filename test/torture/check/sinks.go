package check

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/observerd/observerd/test/torture/history"
)

// sinks compares each sink with the log: the same events, each once, in the
// order of their stream.
func (c *checker) sinks() {
	for _, name := range slices.Sorted(maps.Keys(c.run.Delivered)) {
		sink := &sink{checker: c, name: name, repeats: slices.Contains(c.run.Meta.Repeating, name), has: make(map[*stream][]bool), last: make(map[*stream]int64)}
		for i := range c.run.Delivered[name] {
			sink.take(&c.run.Delivered[name][i])
		}
		for _, s := range c.streams {
			sink.lacks(s)
		}
	}
}

// sink is what one sink has.
type sink struct {
	*checker
	name    string
	repeats bool
	// has tells, for each event of a stream, whether the sink has it.
	has  map[*stream][]bool
	last map[*stream]int64
}

func (k *sink) take(e *history.Event) {
	k.report.Counts[Delivered]++
	s := k.byName[e.Stream]
	if s == nil {
		k.wrong(SinkUnexpected, e, "its stream is not observed")
		return
	}
	if k.has[s] == nil {
		k.has[s] = make([]bool, len(s.events))
	}
	i, ok := s.find(e.Seq)
	if !ok || !sameEvent(s.events[i], e) {
		k.wrong(SinkUnexpected, e, "the log does not have it so")
		return
	}
	switch {
	case k.has[s][i] && k.repeats:
		k.report.Counts[Repeated]++
		return
	case k.has[s][i]:
		k.wrong(SinkDuplicated, e, "it is there twice")
		return
	case e.Seq < k.last[s]:
		k.wrong(SinkReordered, e, fmt.Sprintf("it comes after event %d", k.last[s]))
	}
	k.has[s][i] = true
	k.last[s] = max(k.last[s], e.Seq)
}

// lacks finds what the sink does not have.
func (k *sink) lacks(s *stream) {
	for i, e := range s.events {
		if k.has[s] == nil || !k.has[s][i] {
			k.wrong(SinkLost, e, "the log has it, the sink has not")
		}
	}
}

func (k *sink) wrong(kind Kind, e *history.Event, what string) {
	var at time.Time
	if s := k.byName[e.Stream]; s != nil {
		at = s.when(e.Seq)
	}
	k.blame(kind, k.name, e.Stream+"/"+e.Subject, at, "event %d: %s", e.Seq, what)
}

// find is the place of the first event with that sequence.
func (s *stream) find(seq int64) (int, bool) {
	i := sort.Search(len(s.events), func(i int) bool { return s.events[i].Seq >= seq })
	return i, i < len(s.events) && s.events[i].Seq == seq
}

// sameEvent leaves the transaction aside, which a sink does not know.
func sameEvent(a, b *history.Event) bool {
	x, y := *a, *b
	x.Xid, y.Xid = "", ""
	return x == y
}
