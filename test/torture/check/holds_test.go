package check_test

import (
	"fmt"
	"time"

	"github.com/observerd/observerd/test/torture/history"
)

// hold is a general lock as a program has it.
type hold struct {
	key, mode, term, node string
	fence                 int64
}

var programs = []string{"p1", "p2", "p3"}

func (w *world) hold(stream, mode, node string) hold {
	w.pass(time.Millisecond)
	w.fence++
	w.terms++
	return hold{stream + ":general", mode, fmt.Sprintf("hold-%d", w.terms), node, w.fence}
}

// under writes a row under the lock, which takes its time.
func (w *world) under(h hold) {
	began := w.now
	w.pass(time.Millisecond)
	at := w.now
	w.pass(time.Millisecond)
	w.guarded(h, history.Wrote, began, at)
	w.pass(time.Millisecond)
}

// leaves notes that the program releases the lock.
func (w *world) leaves(h hold) {
	w.guarded(h, history.Left, w.now, w.now)
	w.pass(time.Millisecond)
}

func (w *world) guarded(h hold, kind history.Writing, began, at time.Time) {
	w.run.Guarded = append(w.run.Guarded, history.Guarded{
		ID: w.id(), Key: h.key, Mode: h.mode, Term: h.term, Fence: h.fence, Node: h.node, TTL: ttl, Kind: kind, Trusted: true, Began: began, At: at, Committed: w.now,
	})
}

// readersAndWriters hold a lock in all modes; those whose modes go together do so at once.
func (w *world) readersAndWriters(stream string) {
	for _, modes := range [][2]string{
		{"shared", "shared"}, {"shared", "intent"}, {"intent-exclusive", "intent-exclusive"}, {"intent-exclusive", "intent"}, {"exclusive", ""},
	} {
		first := w.hold(stream, modes[0], programs[w.draw(3)])
		w.under(first)
		if modes[1] != "" {
			second := w.hold(stream, modes[1], programs[w.draw(3)])
			w.under(second)
			w.under(first)
			w.leaves(second)
		}
		w.leaves(first)
	}
}

// programSleeps past its TTL, and wakes when another has the lock.
func (w *world) programSleeps(stream string) {
	slow, other := w.hold(stream, "exclusive", "p1"), "p2"
	w.under(slow)
	began := w.now
	w.pass(ttl + time.Second)
	w.fault("stop-program", "p1", began)
	next := w.hold(stream, "shared", other)
	w.under(next)
	w.leaves(slow)
	w.leaves(next)
}

// programIsLate writes when it trusts its lease no more, just before another has it.
func (w *world) programIsLate(stream string) {
	late := w.hold(stream, "intent", "p2")
	w.under(late)
	w.pass(ttl - 10*time.Millisecond)
	w.under(late)
	w.run.Guarded[len(w.run.Guarded)-1].Trusted = false
	w.pass(300 * time.Millisecond)
	next := w.hold(stream, "exclusive", "p3")
	w.under(next)
	w.leaves(late)
	w.leaves(next)
}

// programDies, and others take its lock before its lease is over.
func (w *world) programDies(stream string) {
	dead := w.hold(stream, "shared", "p3")
	w.under(dead)
	began := w.now
	w.pass(ttl / 4)
	w.fault("kill-program", "p3", began)
	next := w.hold(stream, "exclusive", "p1")
	w.under(next)
	w.leaves(next)
}
