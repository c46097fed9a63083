package netfault

import "time"

// Way is what happens to the bytes of one direction.
type Way int

// The ways.
const (
	// Clear lets them pass.
	Clear Way = iota
	// Lost swallows them, and the end of a connection too. A connection that
	// has lost something is reset when nothing is lost any more: its two ends
	// would not understand each other.
	Lost
	// Stalled keeps them until the impairment changes. Then they arrive, as they
	// do when a network is healed before anybody gives up, even those whose
	// sender has gone meanwhile.
	Stalled
)

// Impairment is what the network does to all connections, present and new. The
// zero value impairs nothing.
type Impairment struct {
	// Up is the way to the server, Down the way to the client.
	Up, Down Way
	// Latency is added to each piece of either direction.
	Latency time.Duration
	// Bandwidth is how many bytes a second pass in either direction of a
	// connection; 0 means no limit.
	Bandwidth int
}

func (w Impairment) way(d direction) Way {
	if d == up {
		return w.Up
	}
	return w.Down
}

func (w Impairment) losesAny() bool { return w.Up == Lost || w.Down == Lost }

// hold is how long a piece of that size takes.
func (w Impairment) hold(size int) time.Duration {
	d := w.Latency
	if w.Bandwidth > 0 {
		d += time.Duration(size) * time.Second / time.Duration(w.Bandwidth)
	}
	return d
}

// BlackHole swallows everything in both directions. New connections are
// accepted, and nobody answers.
func BlackHole() Impairment { return Impairment{Up: Lost, Down: Lost} }

// SetImpairment changes the impairment from now on.
func (p *Proxy) SetImpairment(w Impairment) {
	p.mu.Lock()
	p.impairment = w
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	if w.losesAny() {
		return
	}
	p.each(func(l *link) {
		if l.lossy.Load() {
			l.cut(true)
		}
	})
}

// present is the impairment, and a channel that is closed when it changes.
func (p *Proxy) present() (Impairment, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.impairment, p.changed
}
