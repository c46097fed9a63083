package netfault

import "sync/atomic"

// Stats are what has really happened since the proxy was opened.
type Stats struct {
	// Connections were accepted; Refused were closed at once.
	Connections, Refused int64
	// Ended were cut or reset, Halved left half open.
	Ended, Halved int64
	// Swallowed are pieces that were lost, Stalled those that had to wait for
	// another impairment, Slowed those that were delayed by latency or bandwidth.
	Swallowed, Stalled, Slowed int64
	// AnswersLost, Late and Held are the faults of single requests.
	AnswersLost, Late, Held int64
}

type counters struct {
	connections, refused, ended, halved, swallowed, stalled, slowed, answersLost, late, held atomic.Int64
}

// Stats reads the counters.
func (p *Proxy) Stats() Stats {
	c := &p.count
	return Stats{
		Connections: c.connections.Load(), Refused: c.refused.Load(), Ended: c.ended.Load(), Halved: c.halved.Load(),
		Swallowed: c.swallowed.Load(), Stalled: c.stalled.Load(), Slowed: c.slowed.Load(),
		AnswersLost: c.answersLost.Load(), Late: c.late.Load(), Held: c.held.Load(),
	}
}
