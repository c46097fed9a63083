package sinktest

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
)

func TestMemorySinkKeepsTheContract(t *testing.T) {
	t.Parallel()
	for name, resumes := range map[string]bool{"with positions": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Run(t, func(*testing.T) Harness { return newMemory(sound).harness(resumes) })
		})
	}
}

// TestBrokenSinksFailTheirStory is the test of the suite: each story fails for a sink
// that breaks its promise.
func TestBrokenSinksFailTheirStory(t *testing.T) {
	t.Parallel()
	found := make(map[string]bool)
	for _, tt := range []struct {
		broken fault
		story  string
	}{
		{losesTheFirst, "events are stored whole and in order"},
		{reverses, "events are stored whole and in order"},
		{dropsData, "events are stored whole and in order"},
		{takesNothing, "events are stored whole and in order"},
		{claimsTooMuch, "events are stored whole and in order"},
		{storesTwice, "events are stored whole and in order"},
		{claimsAllOfALargeBatch, "a large batch is stored to its end"},
		{knowsNoRepeat, "a repeat is recognised"},
		{forgetsWhenItIsOpened, "the next term recognises a repeat"},
		{losesAllWhenItIsClosed, "the next term recognises a repeat"},
		{comparesSequences, "the id decides what is a repeat"},
		{losesTheFirst, "streams are mixed in a batch"},
		{claimsAllOfALargeBatch, "streams are mixed in a batch"},
		{stopsAll, "an event that is rejected stops its stream alone"},
		{skipsTheRejected, "an event that is rejected stops its stream alone"},
		{keepsNoPosition, "the position is that of the last event"},
		{movesFirst, "a torn batch and its position are one"},
		{forgetsTheLog, "the position names its log"},
		{movesForTheLate, "a late event leaves the position where it is"},
		{comparesNoEpoch, "an earlier term stores nothing"},
		{keepsTheHighestEpoch, "the terms of a log that was restored are taken"},
		{comparesTheEpochAlone, "nothing is stored that was sent before the sink was opened anew"},
		{claimsTheTornEvent, "a torn batch is completed"},
		{claimsTheTornEvent, "the next term completes a torn batch"},
		{leavesTheTornPiece, "the next term completes a torn batch"},
		{leavesTheTornPiece, "a torn batch spoils no other stream"},
		{claimsWhatWasRefused, "a sink that is refused goes on"},
		{givesUpForEver, "a sink that is refused goes on"},
		{storesWithoutTime, "nothing is stored after the context ended"},
		{hidesTheCause, "nothing is stored after the context ended"},
		{ignoresTheDeadline, "a silent destination holds up no caller"},
		{abandonsItsWrite, "a silent destination holds up no caller"},
	} {
		found[tt.story] = true
		t.Run(string(tt.broken)+"/"+tt.story, func(t *testing.T) {
			t.Parallel()
			if err := tell(t, tt.story, newMemory(tt.broken)); err == nil {
				t.Error("the story finds nothing wrong")
			}
			if err := tell(t, tt.story, newMemory(sound)); err != nil {
				t.Errorf("the story refuses a sound sink: %v", err)
			}
		})
	}
	for _, s := range stories {
		if !found[s.name] {
			t.Errorf("no broken sink is shown to fail %q", s.name)
		}
	}
}

// TestRepeatsAreAllowedWhereTheyAreDeclared has the sink that knows no repeat pass.
func TestRepeatsAreAllowedWhereTheyAreDeclared(t *testing.T) {
	t.Parallel()
	Run(t, func(*testing.T) Harness {
		h := newMemory(knowsNoRepeat).harness(false)
		h.Repeats = true
		return h
	})
}

// tell tells one story in a bubble, where patience costs no time.
func tell(t *testing.T, name string, m *memory) (err error) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for _, s := range stories {
			if s.name == name {
				err = s.tell(ctx, m.harness(s.needs != nil && s.needs(Harness{Stall: m.Stall, Poison: poison}) != ""))
				return
			}
		}
		t.Errorf("there is no story %q", name)
	})
	return err
}

// fault is what a sink does wrong.
type fault string

const (
	sound                  fault = "sound"
	losesTheFirst          fault = "loses the first of a batch"
	reverses               fault = "stores a batch in reverse"
	dropsData              fault = "drops the data"
	takesNothing           fault = "stores nothing and gives no reason"
	claimsTooMuch          fault = "claims more than it was given"
	storesTwice            fault = "stores each batch twice"
	claimsAllOfALargeBatch fault = "claims all of a large batch"
	knowsNoRepeat          fault = "knows no repeat"
	forgetsWhenItIsOpened  fault = "forgets when it is opened"
	losesAllWhenItIsClosed fault = "loses all when it is closed"
	comparesSequences      fault = "compares sequences"
	claimsTheTornEvent     fault = "claims the torn event"
	leavesTheTornPiece     fault = "leaves the torn piece"
	claimsWhatWasRefused   fault = "claims what was refused"
	givesUpForEver         fault = "gives up for ever"
	storesWithoutTime      fault = "stores after the context ended"
	hidesTheCause          fault = "hides the cause"
	ignoresTheDeadline     fault = "ignores the deadline"
	abandonsItsWrite       fault = "abandons its write"
	stopsAll               fault = "stops all streams at an event that is rejected"
	skipsTheRejected       fault = "goes on behind an event that is rejected"
	keepsNoPosition        fault = "keeps no position"
	movesFirst             fault = "moves the position before it stores"
	forgetsTheLog          fault = "writes its own log to a position"
	movesForTheLate        fault = "moves the position for late events"
	comparesNoEpoch        fault = "compares no epoch"
	keepsTheHighestEpoch   fault = "keeps the highest epoch for ever"
	comparesTheEpochAlone  fault = "compares the epoch alone"
)

// memory is a destination of JSON lines in memory.
type memory struct {
	Faults
	broken fault
	text   []byte
	known  map[uuid.UUID]bool
	last   map[string]int64
	given  bool
	// session is the last with positions, which are kept here.
	session   *session
	positions map[string]events.Position
}

func newMemory(broken fault) *memory {
	return &memory{broken: broken, known: make(map[uuid.UUID]bool), last: make(map[string]int64), positions: make(map[string]events.Position)}
}

// poisoned is the type of an event that no memory takes.
const poisoned = "poisoned"

func poison(e *events.Event) { e.Type = poisoned }

func (m *memory) harness(resumes bool) Harness {
	return Harness{
		Open: func(_ context.Context, t sink.Term) (sink.Sink, error) {
			if m.broken == forgetsWhenItIsOpened {
				clear(m.known)
			}
			if !resumes {
				return m, nil
			}
			if last := m.session; last != nil && t.Epoch < last.term.Epoch && (!t.Restored || m.broken == keepsTheHighestEpoch) {
				return nil, &sink.StaleError{Epoch: last.term.Epoch}
			}
			m.session = &session{m, t, make(map[string]events.Position)}
			return m.session, nil
		},
		Stored: func() ([]events.Event, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			return Read(m.text)
		},
		Tear: m.Tear, Refuse: m.Refuse, Stall: m.Stall, Poison: poison, Resumes: resumes,
	}
}

// session is a term of a memory that keeps positions.
type session struct {
	*memory
	term sink.Term
	// at are the positions that this one has read or left.
	at map[string]events.Position
}

func (s *session) Positions(_ context.Context, streams []string) (found []events.Position, _ error) {
	for _, stream := range streams {
		if p, ok := s.positions[stream]; ok {
			if s.broken == forgetsTheLog {
				p.Log = s.term.Log
			}
			s.at[stream] = p
			found = append(found, p)
		}
	}
	return found, nil
}

func (s *session) Redeliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	if s.broken == movesForTheLate {
		return s.Deliver(ctx, batch)
	}
	return s.memory.Deliver(ctx, batch)
}

func (s *session) Deliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	now := s.session
	if s.term.Epoch < now.term.Epoch && s.broken != comparesNoEpoch || s != now && s.broken != comparesNoEpoch && s.broken != comparesTheEpochAlone {
		return sink.Result{}, &sink.StaleError{Epoch: now.term.Epoch}
	}
	if s.broken == movesFirst {
		s.move(events.Ends(batch, s.term.Log, s.at))
	}
	result, err := s.memory.Deliver(ctx, batch)
	if s.broken != keepsNoPosition {
		isLeft := func(e events.Event) bool {
			return !slices.ContainsFunc(result.Stored, func(p events.Position) bool { return p.Stream == e.Stream && p.Seq >= e.Seq })
		}
		result.Stored = events.Ends(slices.DeleteFunc(slices.Clone(batch), isLeft), s.term.Log, s.at)
		s.move(result.Stored)
	}
	return result, err
}

func (s *session) move(to []events.Position) {
	for _, p := range to {
		s.positions[p.Stream], s.at[p.Stream] = p, p
	}
}

func (m *memory) Close() error {
	if m.broken == losesAllWhenItIsClosed {
		m.text = nil
	}
	return nil
}

func (m *memory) Deliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	switch {
	case m.broken == takesNothing:
		return sink.Result{}, nil
	case m.broken == claimsTooMuch:
		return sink.StoredAll(append(batch[:len(batch):len(batch)], Batch("orders", 99, 99)...)), nil
	case m.broken == givesUpForEver && m.given:
		return sink.Result{}, errOver
	case ctx.Err() != nil && m.broken == hidesTheCause:
		return sink.Result{}, ctx.Err()
	case ctx.Err() != nil && m.broken != storesWithoutTime:
		return sink.Result{}, context.Cause(ctx)
	}
	part, rejections := m.taken(batch)
	if len(part) == 0 {
		return sink.Result{Rejected: rejections}, nil
	}
	part = slices.Clone(part[:min(len(part), 4)])
	n, err := m.store(ctx, m.spoiled(part))
	m.given = m.given || err != nil
	switch {
	case m.broken == claimsAllOfALargeBatch && err == nil && len(batch) > 4,
		m.broken == claimsWhatWasRefused && err != nil:
		return sink.StoredAll(batch), err
	case m.broken == losesTheFirst || m.broken == storesTwice:
		return sink.StoredAll(part), err
	}
	return sink.StoredAll(part[:n]), err
}

// taken returns what the memory takes of a batch, and what it rejects.
func (m *memory) taken(batch []events.Event) (part []events.Event, rejected []sink.Rejection) {
	stops := make(map[string]bool)
	for _, e := range batch {
		switch {
		case stops[e.Stream]:
		case e.Type != poisoned:
			part = append(part, e)
		default:
			stops[e.Stream] = m.broken != skipsTheRejected
			rejected = append(rejected, sink.Rejection{Position: events.Position{Stream: e.Stream, Seq: e.Seq, ID: e.ID}, Reason: "poisoned"})
			if m.broken == stopsAll {
				return part, rejected
			}
		}
	}
	return part, rejected
}

// spoiled changes what is about to be stored.
func (m *memory) spoiled(part []events.Event) []events.Event {
	switch m.broken {
	case losesTheFirst:
		return part[1:]
	case reverses:
		slices.Reverse(part)
	case dropsData:
		part[0].Data = nil
	case storesTwice:
		part = append(part, part...)
		for i := range part {
			delete(m.known, part[i].ID)
		}
	}
	return part
}

// store writes one event after the other, and returns how many are stored.
func (m *memory) store(ctx context.Context, part []events.Event) (int, error) {
	for i := range part {
		e := &part[i]
		switch {
		case m.broken == comparesSequences && e.Seq <= m.last[e.Stream]:
			continue
		case m.known[e.ID] && m.broken != knowsNoRepeat && m.broken != storesTwice:
			continue
		}
		n, err := m.write(ctx, append(events.AppendJSON(nil, e), '\n'))
		if err != nil && n > 0 && m.broken == claimsTheTornEvent {
			return i + 1, err
		}
		if err != nil {
			if m.broken != leavesTheTornPiece {
				m.text = m.text[:len(m.text)-n]
			}
			return i, err
		}
		m.known[e.ID], m.last[e.Stream] = true, e.Seq
	}
	return len(part), nil
}

// write waits until the destination takes the text. A sound sink writes nothing when
// its time ends before.
func (m *memory) write(ctx context.Context, text []byte) (n int, err error) {
	take := func() { n, err = m.Write(text, m.append) }
	switch m.broken {
	case ignoresTheDeadline:
		take()
		return n, err
	case abandonsItsWrite:
		done := make(chan struct{})
		go func() { take(); close(done) }()
		select {
		case <-done:
			return n, err
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	if err := m.ready(ctx); err != nil && m.broken != storesWithoutTime {
		return 0, err
	}
	take()
	return n, err
}

func (m *memory) append(text []byte) (int, error) {
	m.mu.Lock() // An abandoned write comes from a goroutine of its own.
	defer m.mu.Unlock()
	m.text = append(m.text, text...)
	return len(text), nil
}

// ready waits while the destination stands still.
func (m *memory) ready(ctx context.Context) error {
	m.mu.Lock()
	stalled := m.stalled
	m.mu.Unlock()
	if stalled == nil {
		return context.Cause(ctx)
	}
	select {
	case <-stalled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
