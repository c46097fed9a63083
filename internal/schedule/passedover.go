package schedule

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// warnAfter is the number of turns in a row after which a warning is logged.
const warnAfter = 10

// passedOver counts the turns in which this node ranks first and another node takes
// the turn. That happens now and then when nodes come or go. A node to which it
// happens in each turn polls nothing, though it is alive and has no error: its way to
// the database takes longer than the next node waits for it.
type passedOver struct {
	log       *slog.Logger
	turns     *prometheus.CounterVec // type
	sincePoll prometheus.Gauge

	mu    sync.Mutex
	since int // turns of all types since this node last polled
}

// add counts one more turn of the type. look is how long the node's last look at it
// has taken.
func (p *passedOver) add(typ string, look time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since++
	p.turns.WithLabelValues(typ).Inc()
	p.sincePoll.Set(float64(p.since))
	if p.since == warnAfter {
		p.log.Warn("Other nodes take the turns in which this node is first in line; it has polled nothing since. "+
			"Its way to the coordination database may take too long", "turns", p.since, "type", typ, "look", look)
	}
}

// reset begins to count anew, because this node polls.
func (p *passedOver) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since >= warnAfter {
		p.log.Info("This node polls again, after turns that other nodes took", "turns", p.since)
	}
	p.since = 0
	p.sincePoll.Set(0)
}
