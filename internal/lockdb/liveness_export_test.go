package lockdb

import "context"

// ShareASession lets the liveness find out that two connections are served by
// one session, as a pooler in transaction mode does it: at once, or later, when
// a look meets another session than the one that holds the advisory lock.
func (l *Liveness) ShareASession(later bool) {
	p := l.p.(*sessionPresence)
	if !later {
		p.pidOf = func(context.Context) (string, error) { return p.pid, nil }
		return
	}
	asked := p.pidOf
	p.pidOf = func(ctx context.Context) (string, error) {
		other, err := asked(ctx)
		p.pid += "0" // what the next looks see is another's
		return other, err
	}
}

// SeesAlive reports whether the last look found that process.
func (l *Liveness) SeesAlive(bootID string) bool {
	open, known := l.news.isOpen(bootID)
	return open && known
}
