package check_test

import (
	"maps"
	"slices"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// breaker breaks one thing of a history. Its finders choose among all that fit,
// and say so when nothing does.
type breaker struct {
	*history.Run
	draw func(n int) int
	// missing says that the history has nothing to break in this way.
	missing bool
}

// broken copies a history, so that it can be changed.
func broken(run history.Run, draw func(n int) int) *breaker {
	run.Meta.Streams = slices.Clone(run.Meta.Streams)
	run.Writes, run.Events, run.Steps = slices.Clone(run.Writes), slices.Clone(run.Events), slices.Clone(run.Steps)
	run.Leases, run.Grants, run.Turns = slices.Clone(run.Leases), slices.Clone(run.Grants), slices.Clone(run.Turns)
	run.Parts, run.Polls, run.Faults = slices.Clone(run.Parts), slices.Clone(run.Polls), slices.Clone(run.Faults)
	run.Lives, run.Acts, run.Counters = slices.Clone(run.Lives), slices.Clone(run.Acts), maps.Clone(run.Counters)
	run.Delivered, run.Guarded = slices.Clone(run.Delivered), slices.Clone(run.Guarded)
	return &breaker{Run: &run, draw: draw}
}

// pick chooses one of the records that fit; a zero one that nobody looks at
// when none does.
func pick[T any](b *breaker, all []T, fits func(i int) bool) *T {
	if i := place(b, all, fits); i >= 0 {
		return &all[i]
	}
	return new(T)
}

// place is the place of what pick would choose; -1 for nothing.
func place[T any](b *breaker, all []T, fits func(i int) bool) int {
	var found []int
	for i := range all {
		if fits(i) {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		b.missing = true
		return -1
	}
	return found[b.draw(len(found))]
}

// remove takes one of the records that fit out.
func remove[T any](b *breaker, all []T, fits func(i int) bool) []T {
	if i := place(b, all, fits); i >= 0 {
		return slices.Delete(all, i, i+1)
	}
	return all
}

func (b *breaker) event(fits func(e history.Event) bool) *history.Event {
	return pick(b, b.Events, func(i int) bool { return fits(b.Events[i]) })
}

func (b *breaker) step(fits func(s history.Step) bool) *history.Step {
	return pick(b, b.Steps, func(i int) bool { return fits(b.Steps[i]) })
}

func (b *breaker) lease(fits func(l history.Lease) bool) *history.Lease {
	return pick(b, b.Leases, func(i int) bool { return fits(b.Leases[i]) })
}

// twins chooses two events of one row, one after the other, in one epoch.
func (b *breaker) twins(stream string, fits func(first, second history.Event) bool) (first, second *history.Event) {
	partner := func(i int) int {
		e := b.Events[i]
		for j := i + 1; j < len(b.Events); j++ {
			if o := b.Events[j]; o.Stream == e.Stream && o.Subject == e.Subject {
				if o.Version == e.Version+1 && fits(e, o) {
					return j
				}
				return -1
			}
		}
		return -1
	}
	i := place(b, b.Events, func(i int) bool { return b.Events[i].Stream == stream && partner(i) >= 0 })
	if i < 0 {
		return new(history.Event), new(history.Event)
	}
	return &b.Events[i], &b.Events[partner(i)]
}

// newest is the last version of a row that fits.
func (b *breaker) newest(stream string, fits func(w history.Write) bool) *history.Write {
	last := make(map[string]int64)
	for _, w := range b.Writes {
		if w.Stream == stream {
			last[w.Key] = w.N
		}
	}
	return pick(b, b.Writes, func(i int) bool {
		w := b.Writes[i]
		return w.Stream == stream && last[w.Key] == w.N && fits(w)
	})
}

// appended adds a version to a row, of which the log says nothing.
func (b *breaker) appended(w *history.Write, gone bool) {
	b.Writes = append(b.Writes, history.Write{Stream: w.Stream, Key: w.Key, N: w.N + 1, Gone: gone, At: w.At})
}

// neighbour is the step of the same stream that is so many behind, or before;
// nil for none.
func (b *breaker) neighbour(s *history.Step, by int) *history.Step {
	var own []int
	at := -1
	for i := range b.Steps {
		if b.Steps[i].Stream == s.Stream {
			if b.Steps[i].ID == s.ID {
				at = len(own)
			}
			own = append(own, i)
		}
	}
	if at < 0 || at+by < 0 || at+by >= len(own) {
		return nil
	}
	return &b.Steps[own[at+by]]
}

func isCommit(s history.Step) bool { return s.Node != "" && s.NewSeq > s.OldSeq }
func live(w history.Write) bool    { return !w.Gone }
func both(_, _ history.Event) bool { return true }
