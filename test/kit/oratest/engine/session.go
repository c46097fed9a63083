package engine

import (
	"strings"
	"time"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// session is the engine's state of a session.
type session struct {
	engine   *Engine
	wire     *wire.Session
	user     string
	zone     *time.Location
	zoneName string
	tx       *transaction
	// plan is the session's PLAN_TABLE, of which the first kept rows are
	// committed.
	plan []planRow
	kept int
}

// session finds the state of a session, or begins it.
func (e *Engine) session(w *wire.Session) *session {
	if s, ok := w.Data.(*session); ok {
		return s
	}
	s := &session{engine: e, wire: w, user: w.User, zone: time.UTC, zoneName: "+00:00"}
	e.mu.Lock()
	defer e.mu.Unlock()
	// Clients ask for a user in any case; without quotes it is in capitals.
	if upper := strings.ToUpper(w.User); e.users[s.user] == nil && e.users[upper] != nil {
		s.user = upper
	}
	for k, v := range w.Settings {
		_ = protect(func() { s.set(k, v) }) // A setting of the logon that is wrong has no effect.
	}
	w.Data = s
	return s
}

// Closed implements [wire.Handler]: an open transaction is rolled back.
func (e *Engine) Closed(w *wire.Session) {
	s, ok := w.Data.(*session)
	if !ok {
		return
	}
	s.endTransaction(false)
	w.Data = nil
}

// set is one part of ALTER SESSION. What NLS settings change, the engine does not do.
func (s *session) set(name, v string) {
	name = strings.ToUpper(name)
	switch {
	case name == "TIME_ZONE":
		loc, ok := location(v)
		if !ok {
			panic(refuse(1882))
		}
		s.zone, s.zoneName = loc, zoneName(loc)
	case !strings.HasPrefix(name, "NLS_"):
		panic(refuse(2248))
	}
}

// transaction returns the session's transaction, which it begins if need be.
func (s *session) transaction() *transaction {
	if s.tx == nil {
		s.tx = &transaction{engine: s.engine}
	}
	return s.tx
}

func (s *session) endTransaction(commit bool) {
	if s.tx != nil && !s.tx.begun.IsZero() {
		if commit {
			s.tx.commit()
			s.kept = len(s.plan)
		} else {
			s.tx.rollback()
			s.plan = s.plan[:s.kept]
		}
	}
	s.tx = nil
}

// view is what a statement of the session sees that begins now.
func (s *session) view() view {
	if s.tx != nil && s.tx.readOnly {
		return view{scn: s.tx.snapshot}
	}
	return view{scn: s.engine.scn.Load(), own: s.tx.stamp()}
}
