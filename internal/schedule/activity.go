package schedule

import (
	"sync"
	"time"
)

// Activity records when this node last worked for a type. Ages are measured on the
// monotonic clock, so that no wrong clock of this node or of a reader changes them.
// Make one with [NewActivity]; it is safe for concurrent use.
type Activity struct {
	mu       sync.Mutex
	last     map[action]time.Time // of each action; of one that was not done, when this was made
	heldFrom time.Time            // zero: the lock is not held
	// alive notes that the type's loop is not stuck: a poll may take long while it commits.
	alive func()
}

// action is a kind of work for a type.
type action string

const (
	acquired  action = "acquired"
	active    action = "active"
	committed action = "committed"
)

// NewActivity returns the activity of a type for which nothing was done yet.
func NewActivity() *Activity {
	now := time.Now()
	return &Activity{last: map[action]time.Time{acquired: now, active: now, committed: now}, alive: func() {}}
}

// Committed records that a chunk of the type was committed just now. The code that
// commits calls it; the scheduler does not see commits.
func (a *Activity) Committed() {
	a.record(committed, active)
	a.alive()
}

func (a *Activity) record(actions ...action) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for _, done := range actions {
		a.last[done] = now
	}
}

// lockAcquired records that the type's lock is held from now on.
func (a *Activity) lockAcquired() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heldFrom = time.Now()
	a.last[acquired] = a.heldFrom
}

// lockReleased records that the type's lock is not held any more.
func (a *Activity) lockReleased() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heldFrom = time.Time{}
}

// held returns for how long the lock has been held; 0 when it is not.
func (a *Activity) held() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.heldFrom.IsZero() {
		return 0
	}
	return time.Since(a.heldFrom)
}

// age returns the time since the action was last done, or since [NewActivity].
func (a *Activity) age(of action) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(a.last[of])
}
