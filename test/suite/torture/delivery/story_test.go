//go:build nightly

package delivery

import (
	"os"
	"testing"
	"time"
)

// promise is how often a target has an event.
type promise int

const (
	atLeastOnce promise = iota
	once                // while the log goes on
	onceByID            // whatever the log does
)

// tortureTime is how long faults strike at least.
func tortureTime() time.Duration {
	if length, err := time.ParseDuration(os.Getenv("OBSERVERD_TORTURE_TIME")); err == nil {
		return length
	}
	return 3 * time.Minute
}

// story tells what happens to a target: faults first, then a target that is restored, and a
// log that is, and at last one that is made anew.
func story(t *testing.T, tg target, lane func(seen) string, p promise) {
	w := newWorld(t, tg)
	w.run(func() { w.while(func() { w.torture(tortureTime()) }) })
	w.drain(func() {})
	w.judge("under faults", nil, lane, p)
	for what, n := range w.struck() {
		t.Logf("struck %d times: %s", n, what)
		if n == 0 {
			t.Errorf("%s has not struck, so that this run proves little", what)
		}
	}
	if r, ok := tg.(restorable); ok {
		w.restoreTarget(r, lane)
	}
	w.takeLogBack("restored", lane, p, func() error { return copyDatabase(t.Context(), w.pg, "log", "backup") })
	w.takeLogBack("made anew", lane, p, func() error { return copyDatabase(t.Context(), w.pg, "log", "template0") })
}

// judge compares what the consumer has seen with the log, where earlier is what came before
// the log went back; nil for never.
func (w *world) judge(when string, earlier []seen, lane func(seen) string, p promise) {
	w.t.Helper()
	log, consumed := w.log(), w.consumed()
	wrong, repeats, known := compareAdopted(w.t, log, earlier, consumed, lane)
	w.t.Logf("%s: %d events in the log, %d consumed, %d of them again, and %d from before", when, len(log), len(consumed), repeats, known)
	if len(wrong) > 0 || p >= once && repeats > 0 || p == onceByID && known > 0 || len(log) < 100 {
		w.t.Errorf("%s: %v, %d again, and %d from before", when, wrong, repeats, known)
	}
}

func (w *world) consumed() []seen {
	w.t.Helper()
	all, err := w.target.consumed(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// some lets the nodes deliver for a while without faults.
func (w *world) some() {
	w.t.Helper()
	w.calm.Store(true)
	w.run(func() { w.while(func() { time.Sleep(8 * time.Second) }) })
}

// restoreTarget takes the target back behind what it has acknowledged.
func (w *world) restoreTarget(r restorable, lane func(seen) string) {
	w.t.Helper()
	if err := r.backUp(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.some()
	w.drain(func() {})
	lost := len(w.consumed())
	if err := r.restore(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	if lost -= len(w.consumed()); lost == 0 {
		w.t.Error("the target has lost nothing")
	}
	w.some()
	w.drain(func() {})
	w.t.Logf("the target was restored, and lacked %d events", lost)
	w.judge("after the target was restored", nil, lane, once)
}

// takeLogBack has the log begin at an earlier state, and the operator adopt what is halted.
func (w *world) takeLogBack(how string, lane func(seen) string, p promise, back func() error) {
	w.t.Helper()
	if err := copyDatabase(w.t.Context(), w.pg, "backup", "log"); err != nil {
		w.t.Fatal(err)
	}
	w.some()
	w.drain(func() {})
	earlier := w.consumed()
	if err := back(); err != nil {
		w.t.Fatal(err)
	}
	adopted := make(map[string]bool)
	w.some()
	w.drain(func() { w.adoptHalted(adopted) })
	w.t.Logf("the log was %s, and %d streams adopted", how, len(adopted))
	if _, positions := w.target.(restorable); positions && len(adopted) == 0 {
		w.t.Error("no stream was halted")
	}
	w.judge("after the log was "+how, earlier, lane, p)
}
