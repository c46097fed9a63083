package schedule

import (
	"context"
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
	// quiet puts the lines of turns without events and errors at DEBUG, see [Options.Quiet].
	quiet bool

	mu   sync.Mutex
	open map[time.Time]*cycle
	// next is the first tick that each type may still serve; a type that is
	// busy with an earlier one is not waited for.
	next map[string]time.Time
	busy map[string]bool
	// tallies are those of each type since the hour began.
	hour    time.Time
	tallies map[string]*tally
}

// tally counts for the summary of an hour.
type tally struct{ turns, polls, events, errors int64 }

type cycle struct {
	began, ended    time.Time       // ended is when the latest of its turns did
	waiting         map[string]bool // due, not begun yet
	running         int
	locked, skipped int
	news            bool // a turn had events or errors
}

func newCycles(log *slog.Logger, m *metrics, types []Type, quiet bool) *cycles {
	return &cycles{
		log: log, metrics: m, types: types, quiet: quiet, tallies: make(map[string]*tally),
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
		c.summarise(at.Truncate(time.Hour))
		c.log.Log(context.Background(), c.level(false), "Starting scheduled polling cycle for all observer types", "tick", at)
	}
	delete(cy.waiting, typ)
	cy.running++
	c.busy[typ] = true
	c.next[typ] = at.Add(1)
}

// level is that of a line of a turn; news says that the turn is known to have events or errors.
func (c *cycles) level(news bool) slog.Level {
	if c.quiet && !news {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// polled counts what a turn has found, and returns the level of its line.
func (c *cycles) polled(at time.Time, typ string, found tally) slog.Level {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.tallies[typ]
	if sum == nil {
		sum = new(tally)
		c.tallies[typ] = sum
	}
	sum.turns++
	sum.polls += found.polls
	sum.events += found.events
	sum.errors += found.errors
	news := found.events > 0 || found.errors > 0
	if cy := c.open[at]; cy != nil {
		cy.news = cy.news || news
	}
	return c.level(news)
}

// summarise logs what the turns of the former hour have found, once a new one has begun.
func (c *cycles) summarise(hour time.Time) {
	if !hour.After(c.hour) {
		return
	}
	var types []any
	for _, typ := range c.types {
		if sum := c.tallies[typ.Name]; sum != nil {
			types = append(types, slog.Group(typ.Name, "turns", sum.turns, "polls", sum.polls, "events", sum.events, "errors", sum.errors))
		}
	}
	if c.quiet && len(types) > 0 {
		c.log.Info("Polling summary", "since", c.hour, slog.Group("types", types...))
	}
	c.hour = hour
	clear(c.tallies)
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
	c.log.Log(context.Background(), c.level(cy.news), "Polling cycle completed for all observer types",
		"tick", at, "locked", cy.locked, "skipped", cy.skipped, "duration", took)
}
