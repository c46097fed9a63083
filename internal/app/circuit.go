package app

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// How long a source that could not be reached is left alone by this process:
// least after the first failure, doubling, most at last.
const (
	leastOpen = 5 * time.Second
	mostOpen  = 5 * time.Minute
)

// circuit keeps the observers of a source from hammering a listener that is
// down: after a failure to reach it, all fail at once until the pause is over;
// then one of them tries. The zero value is closed.
type circuit struct {
	mu     sync.Mutex
	opened int // failures in a row
	until  time.Time
	last   error
}

// enter returns why the source is not to be tried now; nil lets the caller try.
func (c *circuit) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened == 0 {
		return nil
	}
	now := time.Now()
	if left := c.until.Sub(now); left > 0 {
		return &observer.Fault{Class: observer.ClassUnreachable, Err: fmt.Errorf(
			"%w: not tried again for %v, after %d failures, the last: %w", observer.ErrUnreachable, left.Round(time.Second), c.opened, c.last)}
	}
	// Whoever comes first tries; the others wait for what comes of it.
	c.until = now.Add(leastOpen)
	return nil
}

// reached says that the source has answered.
func (c *circuit) reached() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened, c.last = 0, nil
}

// missed says that it could not be reached.
func (c *circuit) missed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pause := leastOpen
	for range c.opened {
		if pause *= 2; pause >= mostOpen {
			break
		}
	}
	c.opened++
	pause = min(pause, mostOpen)
	c.until, c.last = time.Now().Add(pause-pause/5+rand.N(2*pause/5)), err
}
