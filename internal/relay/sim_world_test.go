package relay_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/internal/sink"
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
	resumes bool // and it keeps positions
	parks   bool // what it refuses is parked

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
	// epoch is the last term that a sink with positions knows, opening the last time that
	// it was asked for them, life how often it was restored, steps are what it has stored.
	epoch   int64
	opening int
	life    int
	steps   map[string][]simStep
	// forgotten are events that the sink has lost, and was not given again.
	forgotten map[uuid.UUID]bool
	// late are events that were parked: they are delivered at least once.
	late map[uuid.UUID]bool
	// poison says that the sink refuses some events for good.
	poison bool
}

// simStep is what a sink with positions has stored of a stream in one step.
type simStep struct {
	ids []uuid.UUID
	end events.Position
	era int64
}

func newSimWorld(tally *simtest.Tally, refuses, resumes, parks bool) *simWorld {
	return &simWorld{
		tally: tally, journal: simtest.NewJournal(), refuses: refuses, resumes: resumes, parks: parks, steps: make(map[string][]simStep), forgotten: make(map[uuid.UUID]bool), late: make(map[uuid.UUID]bool),
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

// refuse leaves out what the sink refuses, and what comes behind it in its stream.
func (w *simWorld) refuse(batch []events.Event) (taken []events.Event, rejected []sink.Rejection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := fakeSink{rejects: make(map[uuid.UUID]bool)}
	for _, e := range batch {
		s.rejects[e.ID] = w.poison && e.Seq%5 == 2
	}
	return s.taken(batch)
}

// storeLate is store for parked events.
func (w *simWorld) storeLate(batch []events.Event, s *simSink) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.opening != w.opening || s.life != w.life {
		return 0, &sink.StaleError{Epoch: w.epoch}
	}
	for _, e := range batch {
		w.late[e.ID] = true
		if w.kept[e.ID] == 0 {
			w.inOrder(e)
			w.kept[e.ID], w.since[e.ID] = 1, w.era
		}
	}
	return len(batch), nil
}

// inOrder breaks the world when an event comes behind a later one of its key. A sink without
// positions may be fed by a relay that has lost its lease, and does not know what was parked
// since.
func (w *simWorld) inOrder(e events.Event) {
	for _, later := range w.log.streams[e.Stream] {
		if w.resumes && w.era == 0 && w.life == 0 && later.Key() == e.Key() && later.Seq > e.Seq && w.kept[later.ID] > 0 {
			w.brokenLocked("event %d of %s comes behind event %d of its key", e.Seq, e.Stream, later.Seq)
		}
	}
}

// store is the sink's side of a delivery: events come in order, and nothing is
// left out but what was given up. What was read before the log went back may be out
// of the order that it has now.
func (w *simWorld) store(batch []events.Event, s *simSink, err error) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.resumes && (s.opening != w.opening || s.life != w.life) {
		w.tally.Count("delivery of an earlier term refused")
		return 0, &sink.StaleError{Epoch: w.epoch}
	}
	for _, end := range events.Ends(batch, s.term.Log, s.at) {
		s.at[end.Stream] = end
		step := simStep{end: end, era: w.era}
		for _, e := range batch {
			if e.Stream == end.Stream && w.kept[e.ID] == 0 {
				step.ids = append(step.ids, e.ID)
			}
		}
		w.steps[end.Stream] = append(w.steps[end.Stream], step)
	}
	repeated := false
	for _, e := range batch {
		delete(w.forgotten, e.ID)
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
		w.inOrder(e)
		w.kept[e.ID], w.since[e.ID] = 1, w.era
		if e.Version == w.era {
			w.lacksNothing(e.Stream, e.Seq)
		}
	}
	if repeated {
		w.tally.Count("batch repeated")
	}
	return len(batch), err
}

// forget takes the last step of a stream back, as a target does that lost its last second.
func (w *simWorld) forget(stream string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	steps := w.steps[stream]
	n := len(steps)
	// What a later log has adopted, or was a repeat, is no matter.
	if !w.resumes || n < 2 || steps[n-2].era != w.era || steps[n-2].end.Seq+int64(len(steps[n-1].ids)) != steps[n-1].end.Seq {
		return
	}
	for _, id := range steps[n-1].ids {
		if !slices.ContainsFunc(w.log.streams[stream], func(e events.Event) bool { return e.ID == id }) {
			return // Retention took it; the stream would be halted, and rightly.
		}
	}
	w.tally.Count("the sink forgets")
	w.journal.Note("", "the sink forgets "+stream)
	for _, id := range steps[len(steps)-1].ids {
		delete(w.kept, id)
		w.forgotten[id] = true
	}
	w.steps[stream] = steps[:len(steps)-1]
	w.life++ // Who feeds it notices that the connection is cut.
}

// lives is how often the target was restored.
func (w *simWorld) lives() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.life
}

// lacksNothing breaks the world when the sink lacks an event of the log up to seq
// that nobody gave up, and that is not parked.
func (w *simWorld) lacksNothing(stream string, seq int64) {
	aside := maps.Clone(w.log.dropped)
	for _, p := range w.log.parked {
		aside[p.ID] = true
	}
	for _, e := range w.log.streams[stream] {
		if e.Seq <= seq && w.kept[e.ID] == 0 && !w.forgotten[e.ID] && !aside[e.ID] {
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
