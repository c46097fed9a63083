package observertest

import "time"

// SetClock moves the clock forward to that instant, as time passes.
func (s *Source) SetClock(clock int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(max(0, clock-s.clock))
}

// Pass lets so many seconds pass.
func (s *Source) Pass(seconds int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(seconds)
}

func (s *Source) pass(seconds int64) {
	s.clock += seconds
	s.passed += seconds
}

// TurnBack turns the clock back, which is no time that passes. Transactions
// that are open hold the horizon where the clock is now, since their next rows
// may have that timestamp.
func (s *Source) TurnBack(seconds int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock -= seconds
	for tx := range s.open {
		tx.start = min(tx.start, s.clock)
	}
}

// Clock returns what the clock shows.
func (s *Source) Clock() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

// Now is the time by a clock that no test turns: that of a node.
func (s *Source) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Time(s.passed)
}
