package netfault

import (
	"net"
	"time"
)

// carry brings a piece to its destination, as the impairment allows. It returns
// false when the link is over.
func (l *link) carry(d direction, to net.Conn, piece []byte) bool {
	for {
		if d == up && l.half.Load() {
			l.proxy.count.swallowed.Add(1)
			return true
		}
		w, changed := l.proxy.present()
		switch w.way(d) {
		case Lost:
			l.lossy.Store(true)
			l.proxy.count.swallowed.Add(1)
			return !l.tooLate()
		case Stalled:
			l.proxy.count.stalled.Add(1)
			if !l.await(changed) {
				return false
			}
			continue
		case Clear:
		}
		if hold := w.hold(len(piece)); hold > 0 {
			l.proxy.count.slowed.Add(1)
			if !l.wait(hold) {
				return false
			}
		}
		_, err := to.Write(piece)
		return err == nil
	}
}

// tooLate ends a link that has just become lossy, when the impairment has changed
// meanwhile so that nothing is lost any more: whoever changed it may not have seen
// it.
func (l *link) tooLate() bool {
	w, _ := l.proxy.present()
	if w.losesAny() {
		return false
	}
	l.cut(true)
	return true
}

// farewell returns when the end of one side may be told to the other.
func (l *link) farewell(d direction) {
	for !l.half.Load() {
		w, changed := l.proxy.present()
		switch w.way(d) {
		case Clear:
			return
		case Lost:
			l.lossy.Store(true)
		case Stalled:
		}
		if !l.await(changed) {
			return
		}
	}
}

// passable returns when a new connection gets through to the server.
func (l *link) passable() bool {
	for {
		w, changed := l.proxy.present()
		if w.Up != Stalled && w.Down != Stalled {
			return true
		}
		if !l.await(changed) {
			return false
		}
	}
}

// await returns false when the link is over before the impairment changes.
func (l *link) await(changed <-chan struct{}) bool {
	select {
	case <-changed:
		return true
	case <-l.over:
		return false
	}
}

// wait lets time pass; false when the link is over.
func (l *link) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.over:
		return false
	case <-l.proxy.ctx.Done():
		return false
	}
}
