package oratest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Trap is a fault that lies in wait.
type Trap struct {
	call  Call
	match func(sql string) bool
	fault Fault

	reached  chan struct{}
	reach    sync.Once
	released chan struct{}
	release  sync.Once

	// hits and the first are guarded by the list of traps.
	traps *traps
	seen  int
	hits  int
}

// traps are those of a server, the oldest first.
type traps struct {
	mu  sync.Mutex
	all []*Trap
}

// SQL matches statements that contain a text, in any case.
func SQL(text string) func(string) bool {
	return func(sql string) bool { return strings.Contains(strings.ToUpper(sql), strings.ToUpper(text)) }
}

// On lays a fault for the statements that match; nil matches all of them.
func (s *Server) On(match func(sql string) bool, f Fault) *Trap {
	return s.lay(&Trap{call: Statement, match: match, fault: f})
}

// OnCall lays a fault for calls that are no statements.
func (s *Server) OnCall(call Call, f Fault) *Trap {
	return s.lay(&Trap{call: call, fault: f})
}

func (s *Server) lay(t *Trap) *Trap {
	t.traps, t.reached, t.released = &s.traps, make(chan struct{}), make(chan struct{})
	s.traps.mu.Lock()
	s.traps.all = append(s.traps.all, t)
	s.traps.mu.Unlock()
	return t
}

// ClearFaults takes all traps away and releases what hangs in them.
func (s *Server) ClearFaults() {
	s.traps.mu.Lock()
	all := slices.Clone(s.traps.all)
	s.traps.mu.Unlock()
	for _, t := range all {
		t.Release()
	}
}

// Reached is closed once the fault has befallen a call.
func (t *Trap) Reached() <-chan struct{} { return t.reached }

// Hits counts the calls that the fault has befallen.
func (t *Trap) Hits() int {
	t.traps.mu.Lock()
	defer t.traps.mu.Unlock()
	return t.hits
}

// Release takes the trap away. Calls that hang in it go on to its action.
func (t *Trap) Release() {
	t.traps.mu.Lock()
	t.traps.all = slices.DeleteFunc(t.traps.all, func(other *Trap) bool { return other == t })
	t.traps.mu.Unlock()
	t.release.Do(func() { close(t.released) })
}

// sprung returns the trap that a call falls into, nil for none.
func (all *traps) sprung(call Call, at Stage, sql string) *Trap {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, t := range all.all {
		if t.call != call || t.fault.At != at || t.match != nil && !t.match(sql) {
			continue
		}
		t.seen++
		if t.seen <= t.fault.Skip || t.fault.Times > 0 && t.hits >= t.fault.Times {
			continue
		}
		t.hits++
		return t
	}
	return nil
}

func (t *Trap) wait(ctx context.Context) error {
	if t.fault.Delay > 0 {
		timer := time.NewTimer(t.fault.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return errGone
		}
	}
	if t.fault.Hang {
		select {
		case <-t.released:
		case <-ctx.Done():
			return errGone
		}
	}
	return nil
}
