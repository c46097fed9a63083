package oratest

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// Received is a statement as it arrived.
type Received struct {
	SQL   string
	Binds []wire.Value
	// Executed says that the handler was asked to execute it.
	Executed bool
}

type counters struct {
	connects, logons, failedLogons, fetches, roundTrips, breaks atomic.Int64

	mu         sync.Mutex
	statements []*Received
	problems   []error
}

func (c *counters) received(r *Received) {
	c.mu.Lock()
	c.statements = append(c.statements, r)
	c.mu.Unlock()
}

func (c *counters) executed(r *Received) {
	c.mu.Lock()
	r.Executed = true
	c.mu.Unlock()
}

func (c *counters) problem(err error) {
	c.mu.Lock()
	c.problems = append(c.problems, err)
	c.mu.Unlock()
}

// Connects counts the connections that got as far as asking for a service.
func (s *Server) Connects() int { return int(s.counters.connects.Load()) }

// Logons counts the sessions that were opened.
func (s *Server) Logons() int { return int(s.counters.logons.Load()) }

// FailedLogons counts the logons that were refused.
func (s *Server) FailedLogons() int { return int(s.counters.failedLogons.Load()) }

// Fetches counts the calls that fetched more rows of a statement.
func (s *Server) Fetches() int { return int(s.counters.fetches.Load()) }

// RoundTrips counts what clients have asked, from the connect on.
func (s *Server) RoundTrips() int { return int(s.counters.roundTrips.Load()) }

// Breaks counts the breaks that clients have sent.
func (s *Server) Breaks() int { return int(s.counters.breaks.Load()) }

// Open counts the connections that are open, mute ones among them.
func (s *Server) Open() int { return len(s.open()) }

// Statements returns the statements received so far, in their order.
func (s *Server) Statements() []Received {
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	all := make([]Received, len(s.counters.statements))
	for i, r := range s.counters.statements {
		all[i] = *r
	}
	return all
}

// Problems returns what clients said that the server did not understand.
func (s *Server) Problems() []error {
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	return slices.Clone(s.counters.problems)
}
