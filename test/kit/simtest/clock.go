package simtest

import (
	"sync"
	"time"
)

// Clock is one that differs from the bubble's: it jumps, and it runs fast or
// slow. It is safe for concurrent use.
type Clock struct {
	mu    sync.Mutex
	base  time.Time // of the bubble
	shown time.Time // at base
	rate  float64   // gained, in seconds a second
}

// NewClock returns a clock that shows the bubble's time.
func NewClock() *Clock {
	now := time.Now()
	return &Clock{base: now, shown: now}
}

// Now is what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time {
	real := time.Since(c.base)
	return c.shown.Add(real + time.Duration(float64(real)*c.rate))
}

// Jump moves the clock.
func (c *Clock) Jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base, c.shown = time.Now(), c.now().Add(d)
}

// Drift lets the clock gain that many seconds a second from now on, or lose
// them where it is negative.
func (c *Clock) Drift(rate float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base, c.shown, c.rate = time.Now(), c.now(), rate
}
