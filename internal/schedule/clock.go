package schedule

import (
	"sync"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
)

// clock knows the database's time without asking it. It is based on the monotonic
// clock alone, so that setting the node's clock does not change it.
type clock struct {
	base time.Time

	mu     sync.Mutex
	offset time.Duration // database's time less ours
	doubt  time.Duration // the most by which offset was wrong when measured
	known  bool
}

func newClock() *clock { return &clock{base: time.Now()} }

// local returns this node's time, without steps.
func (c *clock) local() time.Time {
	return c.base.Add(time.Since(c.base)).Round(0).Add(failpoint.ClockOffset())
}

// now returns the database's time, as far as it is known.
func (c *clock) now() time.Time { return c.local().Add(c.ahead()).UTC() }

// ahead returns how far the database's clock is ahead of ours.
func (c *clock) ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// measured updates the offset: the database's clock showed db at some moment between
// sent and received, most likely in the middle. A measurement that agrees with the
// present offset is dropped unless it is more exact: jobs need a steady offset more
// than the last millisecond.
func (c *clock) measured(sent, received, db time.Time) {
	doubt := received.Sub(sent) / 2
	offset := db.Sub(sent.Add(doubt))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && doubt >= c.doubt && (offset-c.offset).Abs() <= doubt {
		return
	}
	c.offset, c.doubt, c.known = offset, doubt, true
}
