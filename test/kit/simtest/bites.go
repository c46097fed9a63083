package simtest

import "time"

// Bites are calls that were not answered as they should have been.
type Bites struct {
	Count int
	// Last is when the last of them ended; now, while one is under way.
	Last time.Time
}

// asleep is the name under which pauses count among the bites.
const asleep = "asleep"

func (w *Wire) bite(call string) {
	b := w.bites[call]
	w.bites[call] = Bites{Count: b.Count + 1, Last: time.Now()}
}

// Bites returns what befell calls of these names so far, and the process
// itself.
func (w *Wire) Bites(calls ...string) (all Bites) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, call := range append(calls, asleep) {
		b := w.bites[call]
		all.Count += b.Count
		if b.Last.After(all.Last) {
			all.Last = b.Last
		}
		if w.biting[call] > 0 || w.asleep() {
			all.Last = time.Now()
		}
	}
	return all
}

// Busy reports whether a call of that name is under way.
func (w *Wire) Busy(call string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.active[call] > 0
}
