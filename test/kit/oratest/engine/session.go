package engine

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// session is the engine's state of a session.
type session struct {
	engine   *Engine
	wire     *wire.Session
	user     string
	schema   string
	sid      int
	serial   int
	instance int
	zone     *time.Location
	zoneName string
	nls      map[string]string
	tx       *transaction
	began    time.Time
	// plan is the session's PLAN_TABLE, of which the first kept rows are
	// committed.
	plan   []planRow
	kept   int
	planID int

	// label guards what the session says about itself, which others may read.
	label                  sync.Mutex
	module, action, client string
}

var defaultNLS = map[string]string{
	"NLS_LANGUAGE": "AMERICAN", "NLS_TERRITORY": "AMERICA", "NLS_CALENDAR": "GREGORIAN",
	"NLS_DATE_FORMAT": "DD-MON-RR", "NLS_DATE_LANGUAGE": "AMERICAN", "NLS_NUMERIC_CHARACTERS": ".,",
	"NLS_SORT": "BINARY", "NLS_COMP": "BINARY", "NLS_LENGTH_SEMANTICS": "BYTE",
	"NLS_TIMESTAMP_FORMAT": "DD-MON-RR HH.MI.SSXFF AM", "NLS_TIMESTAMP_TZ_FORMAT": "DD-MON-RR HH.MI.SSXFF AM TZR",
}

// session finds the state of a session, or begins it.
func (e *Engine) session(w *wire.Session) *session {
	if s, ok := w.Data.(*session); ok {
		return s
	}
	return e.sessionOn(w, 1)
}

// sessionOn begins a session on an instance.
func (e *Engine) sessionOn(w *wire.Session, instance int) *session {
	s := &session{
		engine: e, wire: w, user: w.User, schema: w.User, serial: w.SerialNo, instance: instance,
		zone: time.UTC, zoneName: "+00:00", nls: maps.Clone(defaultNLS), began: e.now(),
	}
	// Clients ask for a user in any case; without quotes it is in capitals.
	e.mu.Lock()
	defer e.mu.Unlock()
	if upper := strings.ToUpper(w.User); e.users[s.user] == nil && e.users[upper] != nil {
		s.user, s.schema = upper, upper
	}
	s.sid = e.freeSID()
	for k, v := range w.Settings {
		_ = s.set(k, v) // A setting of the logon that is wrong has no effect.
	}
	e.sessions[s] = true
	w.Data = s
	return s
}

// freeSID returns the lowest number that no session has. The caller holds mu.
func (e *Engine) freeSID() int {
	used := map[int]bool{}
	for s := range e.sessions {
		used[s.sid] = true
	}
	sid := 101
	for used[sid] {
		sid++
	}
	return sid
}

// Closed implements [wire.Handler]: an open transaction is rolled back.
func (e *Engine) Closed(w *wire.Session) {
	s, ok := w.Data.(*session)
	if !ok {
		return
	}
	s.endTransaction(false)
	e.mu.Lock()
	delete(e.sessions, s)
	e.mu.Unlock()
	w.Data = nil
}

// set is one part of ALTER SESSION.
func (s *session) set(name, v string) error {
	name = strings.ToUpper(name)
	switch {
	case name == "TIME_ZONE":
		loc, ok := location(v)
		if !ok {
			return refuse(1882)
		}
		s.zone, s.zoneName = loc, zoneName(loc, s.began)
	case strings.HasPrefix(name, "NLS_"):
		if strings.HasSuffix(name, "_FORMAT") {
			if err := protect(func() { parseFormat(v) }); err != nil {
				return err
			}
		}
		s.nls[name] = v
	default:
		return refuse(2248)
	}
	if s.wire.Settings == nil {
		s.wire.Settings = map[string]string{}
	}
	s.wire.Settings[name] = v
	return nil
}

// settings copies what ALTER SESSION has set to another session.
func (s *session) settings(to *session) {
	to.zone, to.zoneName, to.nls = s.zone, s.zoneName, maps.Clone(s.nls)
}

// format is the session's format for a kind of time.
func (s *session) format(k kind) []element {
	name := "NLS_DATE_FORMAT"
	switch k {
	case kindTimestamp, kindTimestampLTZ:
		name = "NLS_TIMESTAMP_FORMAT"
	case kindTimestampTZ:
		name = "NLS_TIMESTAMP_TZ_FORMAT"
	}
	return parseFormat(s.nls[name])
}

// transaction returns the session's transaction, which it begins if need be.
func (s *session) transaction() *transaction {
	if s.tx == nil {
		s.tx = &transaction{engine: s.engine, session: s, instance: s.instance}
	}
	return s.tx
}

func (s *session) endTransaction(commit bool) {
	if s.tx == nil {
		return
	}
	if commit {
		s.tx.commit()
		s.kept = len(s.plan)
	} else {
		s.tx.rollback()
		s.plan = s.plan[:s.kept]
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
