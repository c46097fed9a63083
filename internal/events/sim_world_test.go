package events_test

import (
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/test/kit/simtest"
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
	// saved is the log as it was, era how often it went back to that.
	saved *simLog
	era   int64
	// kept is how often the sink holds each event, since is the era in which it was
	// given that last.
	kept  map[uuid.UUID]int
	since map[uuid.UUID]int64
	// repeats are events that the sink was given again; causes are what may be to
	// blame, each for a batch.
	repeats, causes int
}

func newSimWorld(tally *simtest.Tally, refuses bool) *simWorld {
	return &simWorld{
		tally: tally, journal: simtest.NewJournal(), refuses: refuses,
		log: newSimLog(), kept: make(map[uuid.UUID]int), since: make(map[uuid.UUID]int64),
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
// left out but what was given up. What was read before the log went back may be out
// of the order that it has now.
func (w *simWorld) store(batch []events.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	repeated := false
	for _, e := range batch {
		if w.kept[e.ID] > 0 {
			if w.since[e.ID] == w.era {
				repeated = true
				w.repeats++
			}
			w.since[e.ID] = w.era
			if !w.refuses {
				w.kept[e.ID]++
			}
			continue
		}
		w.kept[e.ID], w.since[e.ID] = 1, w.era
		if e.Version == w.era {
			w.lacksNothing(e.Stream, e.Seq)
		}
	}
	if repeated {
		w.tally.Count("batch repeated")
	}
}

// lacksNothing breaks the world when the sink lacks an event of the log up to seq
// that nobody gave up.
func (w *simWorld) lacksNothing(stream string, seq int64) {
	for _, e := range w.log.streams[stream] {
		if e.Seq <= seq && w.kept[e.ID] == 0 {
			w.brokenLocked("the sink lacks event %d of %s, and is at %d", e.Seq, stream, seq)
		}
	}
	for gap := range w.log.missing[stream] {
		if gap <= seq && !w.log.waived[stream][gap] {
			w.brokenLocked("%s has nothing at %d, and the sink is at %d", stream, gap, seq)
		}
	}
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
