package schedule

import (
	"log/slog"
	"sync"
	"time"
)

// cycles groups the turns of all types that are due at one tick, for logs and metrics.
// Nothing else depends on it.
type cycles struct {
	log     *slog.Logger
	metrics *metrics
	types   []Type

	mu   sync.Mutex
	open map[time.Time]*cycle
	// next is the first tick that each type may still serve; a type that is
	// busy with an earlier one is not waited for.
	next map[string]time.Time
	busy map[string]bool
}

type cycle struct {
	began, ended    time.Time       // ended is when the latest of its turns did
	waiting         map[string]bool // due, not begun yet
	running         int
	locked, skipped int
}

func newCycles(log *slog.Logger, m *metrics, types []Type) *cycles {
	return &cycles{
		log: log, metrics: m, types: types,
		open: make(map[time.Time]*cycle), next: make(map[string]time.Time), busy: make(map[string]bool),
	}
}

// expect notes the first ticks that the types will serve.
func (c *cycles) expect(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, typ := range c.types {
		c.next[typ.Name] = tick(typ.serves(now), typ.Interval)
	}
}

// begin notes that a type's turn at that tick begins.
func (c *cycles) begin(at time.Time, typ string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeStale(at)
	cy := c.open[at]
	if cy == nil {
		cy = &cycle{began: time.Now(), waiting: c.due(at)}
		c.open[at] = cy
		c.log.Info("Starting scheduled polling cycle for all observer types", "tick", at)
	}
	delete(cy.waiting, typ)
	cy.running++
	c.busy[typ] = true
	c.next[typ] = at.Add(1)
}

// due returns the types that will begin a turn of that tick. A type whose turn still
// runs skips it; a type with a shift may be done by then.
func (c *cycles) due(at time.Time) map[string]bool {
	due := make(map[string]bool)
	for _, typ := range c.types {
		if at.UnixNano()%int64(typ.Interval) == 0 && (!c.busy[typ.Name] || typ.Shift > 0) && !at.Before(c.next[typ.Name]) {
			due[typ.Name] = true
		}
	}
	return due
}

// end notes that a type's turn has ended; locked says that this node polled.
func (c *cycles) end(at time.Time, typ string, locked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy[typ] = false
	cy := c.open[at]
	if cy == nil {
		return
	}
	cy.running--
	cy.ended = time.Now()
	if locked {
		cy.locked++
	} else {
		cy.skipped++
	}
	if cy.running == 0 && len(cy.waiting) == 0 {
		c.close(at, cy)
	}
}

// closeStale closes earlier cycles that wait for a type which did not come.
func (c *cycles) closeStale(before time.Time) {
	for at, cy := range c.open {
		if at.Before(before) && cy.running == 0 {
			c.close(at, cy)
		}
	}
}

func (c *cycles) close(at time.Time, cy *cycle) {
	delete(c.open, at)
	took := cy.ended.Sub(cy.began)
	c.metrics.cycle.Observe(took.Seconds())
	c.metrics.cycleLocked.Set(float64(cy.locked))
	c.metrics.cycleSkipped.Set(float64(cy.skipped))
	c.log.Info("Polling cycle completed for all observer types",
		"tick", at, "locked", cy.locked, "skipped", cy.skipped, "duration", took)
}
