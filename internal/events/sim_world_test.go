package events_test

import (
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/internal/simtest"
)

// simWorld is what the relays of all nodes share: the event log, the sink's
// lock and the sink, and what must be true of them.
type simWorld struct {
	tally   *simtest.Tally
	journal *simtest.Journal
	locks   locktest.Memory
	work    sync.WaitGroup
	refuses bool // the sink recognises what it has stored

	mu     sync.Mutex
	wrong  string
	log    *simLog
	relays []*simRelay
	// high is the end of what the sink has stored of each stream, in order.
	high map[string]int64
	// kept is how often the sink holds each event.
	kept map[uuid.UUID]int
	// repeats are events that the sink was given again; causes are what may be to
	// blame, each for a batch.
	repeats, causes int
}

func newSimWorld(tally *simtest.Tally, refuses bool) *simWorld {
	return &simWorld{
		tally: tally, journal: simtest.NewJournal(), refuses: refuses,
		log: newSimLog(), high: make(map[string]int64), kept: make(map[uuid.UUID]int),
	}
}

func (w *simWorld) broken(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.brokenLocked(format, args...)
}

func (w *simWorld) brokenLocked(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
		w.journal.Close(w.wrong)
	}
}

func (w *simWorld) verdict() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrong
}

// store is the sink's side of a delivery: events come in order, and nothing is
// left out but what was given up.
func (w *simWorld) store(batch []events.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	repeated := false
	for _, e := range batch {
		if w.kept[e.ID] > 0 {
			repeated = true
			w.repeats++
			if !w.refuses {
				w.kept[e.ID]++
			}
			continue
		}
		w.kept[e.ID] = 1
		if e.Seq != w.stored(e.Stream)+1 {
			w.brokenLocked("event %d of %s follows on %d", e.Seq, e.Stream, w.high[e.Stream])
		}
		w.high[e.Stream] = e.Seq
	}
	if repeated {
		w.tally.Count("batch repeated")
	}
}

// stored is the end of what the sink has of the stream, gaps included that an
// operator has given up.
func (w *simWorld) stored(stream string) int64 {
	high := w.high[stream]
	for w.log.waived[stream][high+1] {
		high++
	}
	return high
}

// blame notes that something happened after which a batch may be repeated.
func (w *simWorld) blame() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.causes++
}

// freed tells those who stand by that the lease may be free.
func (w *simWorld) freed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.relays {
		r.hear()
	}
}
