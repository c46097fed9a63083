package check_test

import (
	"fmt"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
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

// without writes a row under no guard.
func (w *world) without(h hold) {
	w.guarded(h, history.Bare, w.now, w.now)
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

// programIsCutOff, and writes on for as long as it trusts its lease.
func (w *world) programIsCutOff(stream string) {
	cut := w.hold(stream, "exclusive", "p2")
	w.under(cut)
	began := w.now
	for range 3 {
		w.pass(ttl / 4)
		w.without(cut)
	}
	w.pass(ttl / 4)
	w.fault("one-way-program", "p2", began)
	w.pass(300 * time.Millisecond)
	next := w.hold(stream, "exclusive", "p3")
	w.without(next)
	w.under(next)
	w.leaves(cut)
	w.leaves(next)
}

// programWakes when another has the lock, and writes once more.
func (w *world) programWakes(stream string) {
	slow := w.hold(stream, "exclusive", "p1")
	w.under(slow)
	began := w.now
	w.pass(ttl + time.Second)
	next := w.hold(stream, "exclusive", "p2")
	w.under(next)
	w.pass(time.Second)
	w.without(slow)
	w.fault("stop-program", "p1", began)
	w.leaves(slow)
	w.leaves(next)
}

// programDies, and others take its lock when its lease is over.
func (w *world) programDies(stream string) {
	dead := w.hold(stream, "shared", "p3")
	w.under(dead)
	began := w.now
	w.pass(ttl / 4)
	w.fault("kill-program", "p3", began)
	w.pass(ttl)
	next := w.hold(stream, "exclusive", "p1")
	w.under(next)
	w.leaves(next)
}
