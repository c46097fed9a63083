package schedule_test

import (
	"fmt"
	"maps"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/turn"
)

// forgive notes that the last tick of a turn or stream may be ignored, if it
// lies so far ahead by the database's clock. The caller holds db.mu.
func (w *simWorld) forgive(id string, at time.Time) {
	ahead := at.Sub(w.db.now())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.absurd[id] = w.absurd[id] || ahead > simIntervals[0]
}

// follows reports whether a tick may follow on the last one of the turn or
// stream. The caller holds db.mu.
func (w *simWorld) follows(id string, last, at time.Time) bool {
	w.mu.Lock()
	absurd := w.absurd[id]
	w.absurd[id] = false
	w.mu.Unlock()
	w.forgive(id, at)
	return absurd || at.After(last)
}

// judgeTurn judges a turn that is about to be taken: later than the last one,
// and each observer of it has had its part.
func (w *simWorld) judgeTurn(n *simNode, t turn.Taken) {
	w.journal.Note(n.name, fmt.Sprintf("takes the turn of %s at %s", t.Type, t.At.Format(time.TimeOnly)))
	w.db.mu.Lock()
	streams := maps.Clone(w.db.streams)
	follows := w.follows(t.Type, w.db.turns[t.Type].At, t.At)
	w.db.mu.Unlock()
	if !follows {
		w.broken("turn of %s taken again", t.Type)
	}
	if t.At.UnixNano()%int64(n.interval) != 0 {
		w.broken("turn of %s is not at a tick", t.Type)
	}
	for _, id := range n.observers[t.Type] {
		s := streams[id]
		waits := s.RetryAt.After(t.At) || id == simRare && t.At.Sub(s.At) < simRarity*n.interval
		if s.At.Before(t.At) && !waits {
			w.broken("turn of %s taken, though %s has not had its part", t.Type, id)
		}
	}
}

// judgeNote judges an observer's part: it was polled under this grant, and has
// one turn a tick.
func (w *simWorld) judgeNote(n *simNode, g lock.Grant, t turn.StreamTaken) {
	w.journal.Note(n.name, fmt.Sprintf("notes %s of %s at %s", t.Outcome, t.Stream, t.At.Format(time.TimeOnly)))
	w.mu.Lock()
	committed := w.committed[t.Stream] == g.Term
	w.mu.Unlock()
	switch {
	case t.Outcome == turn.OK && !committed:
		w.broken("%s noted as polled without a commit", t.Stream)
	case t.Outcome == turn.Unreachable && !t.Left:
		w.broken("turn of %s, which was not reached, is not left to others", t.Stream)
	case t.Left:
		w.tally.Count("part left to others")
		return
	}
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	last := w.db.streams[t.Stream]
	w.mu.Lock()
	absurd := w.absurd[t.Stream]
	w.mu.Unlock()
	if t.Stream == simRare && !absurd && last.Failures == 0 && t.At.Sub(last.At) < simRarity*n.interval-n.interval/2 {
		w.broken("%s polled again after %s, with an interval of %s", t.Stream, t.At.Sub(last.At), n.interval)
	}
	if !w.follows(t.Stream, last.At, t.At) {
		w.broken("%s polled twice in a turn", t.Stream)
	}
}
