package oratest

// Refuse refuses the next n connections with a code of the listener, or closes
// them without a word for code 0; n < 0 refuses all until it is called again.
func (s *Server) Refuse(n, code int) {
	s.mu.Lock()
	s.refusals, s.refusal = n, code
	s.mu.Unlock()
}

// Mute makes connections that come from now on stay without any answer.
func (s *Server) Mute(mute bool) {
	s.mu.Lock()
	s.mute = mute
	s.mu.Unlock()
}

// KillSessions ends every session with ORA-00028: its call under way, or else
// its next one.
func (s *Server) KillSessions() {
	for _, c := range s.open() {
		c.kill()
	}
}
