package check

import (
	"iter"
	"slices"
	"sort"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// epoch numbers the times between the resets that forgot.
func (s *stream) epoch(seq int64) int {
	n, _ := slices.BinarySearch(s.forgot, seq) // An event at the reset itself is before it.
	return n
}

// epochs yields the events of a row, epoch by epoch.
func (s *stream) epochs(r *row) iter.Seq[[]*history.Event] {
	return func(yield func([]*history.Event) bool) {
		for rest := r.events; len(rest) > 0; {
			n, epoch := 1, s.epoch(rest[0].Seq)
			for n < len(rest) && s.epoch(rest[n].Seq) == epoch {
				n++
			}
			if !yield(rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

// current are the events of the row in the last epoch.
func (s *stream) current(r *row) []*history.Event {
	for i, e := range r.events {
		if s.epoch(e.Seq) == len(s.forgot) {
			return r.events[i:]
		}
	}
	return nil
}

// commitOf is the step that committed the event of that sequence; nil if it is
// not known.
func (s *stream) commitOf(seq int64) *history.Step {
	i := sort.Search(len(s.commits), func(i int) bool { return s.commits[i].NewSeq >= seq })
	if i == len(s.commits) {
		return nil
	}
	return s.commits[i]
}

// when is when the event of that sequence was committed; zero if it is not
// known.
func (s *stream) when(seq int64) time.Time {
	if commit := s.commitOf(seq); commit != nil {
		return commit.At
	}
	return time.Time{}
}
