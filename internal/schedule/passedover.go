package schedule

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// manyPassed is the number of turns in a row that is worth a word.
const manyPassed = 10

// passedOver counts the turns in which this node is first in line and another takes
// them all the same. One now and then is a node that has come or gone. A node to
// which that happens in each turn polls nothing, though it is alive and has no error:
// its way to the database takes longer than the grace of the next in line.
type passedOver struct {
	log   *slog.Logger
	turns *prometheus.CounterVec // type
	row   prometheus.Gauge

	mu sync.Mutex
	// since counts those since this node last polled, whatever the type.
	since int
}

// more is one more turn of the type. look is how long the node's last look at it
// has taken.
func (p *passedOver) more(typ string, look time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since++
	p.turns.WithLabelValues(typ).Inc()
	p.row.Set(float64(p.since))
	if p.since == manyPassed {
		p.log.Warn("Other nodes take the turns in which this node is first in line; it has polled nothing since. "+
			"Its way to the coordination database may take too long", "turns", p.since, "type", typ, "look", look)
	}
}

// ends says that this node polls.
func (p *passedOver) ends() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since >= manyPassed {
		p.log.Info("This node polls again, after turns that other nodes took", "turns", p.since)
	}
	p.since = 0
	p.row.Set(0)
}
