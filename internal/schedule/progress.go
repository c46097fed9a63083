package schedule

import (
	"sync"
	"time"
)

// Progress is what this node has last done for a type, so that its age can be
// told. It is measured on the monotonic clock: no clock that is wrong, of this
// node or of whoever reads the age, plays a part. Make one with [NewProgress];
// it is safe for concurrent use.
type Progress struct {
	mu    sync.Mutex
	made  time.Time
	last  map[deed]time.Time
	since time.Time // of the lock that is held; zero: it is not
	// beat is told of commits: a poll that takes long is not stuck. Nil is not told.
	beat func()
}

// deed is something that a node does for a type. What concerns one observer
// has its id.
type deed struct {
	what     string
	observer string
}

var (
	acquired  = deed{what: "acquired"}
	active    = deed{what: "active"}
	committed = deed{what: "committed"}
)

func succeeded(observer string) deed { return deed{"succeeded", observer} }

// NewProgress returns the progress of a type for which nothing was done yet.
func NewProgress() *Progress {
	return &Progress{made: time.Now(), last: make(map[deed]time.Time)}
}

// Committed says that a chunk of the type was committed just now. Whoever
// commits calls it; the scheduler does not see it.
func (p *Progress) Committed() {
	p.note(committed, active)
	p.alive()
}

// alive says that the type's loop is not stuck.
func (p *Progress) alive() {
	if p.beat != nil {
		p.beat()
	}
}

func (p *Progress) note(deeds ...deed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, d := range deeds {
		p.last[d] = now
	}
}

// hold says that the type's lock is held from now on.
func (p *Progress) hold() {
	p.note(acquired)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = p.last[acquired]
}

// letGo says that the type's lock is not held any more.
func (p *Progress) letGo() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
}

// held is for how long the lock has been held; 0 when it is not.
func (p *Progress) held() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return 0
	}
	return time.Since(p.since)
}

// age is the time since the deed, or since there was a scheduler to do it.
func (p *Progress) age(d deed) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, done := p.last[d]; done {
		return time.Since(last)
	}
	return time.Since(p.made)
}
