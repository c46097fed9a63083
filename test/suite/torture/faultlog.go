package torture

import (
	"sync"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// faultLog notes what was done to the cluster.
type faultLog struct {
	mu     sync.Mutex
	faults []history.Fault
	lives  []history.Life
	odds   []error
}

// odd notes something that a node should not do under any fault.
func (l *faultLog) odd(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.odds = append(l.odds, err)
}

func (l *faultLog) life(node string, began, ended time.Time, how string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lives = append(l.lives, history.Life{Node: node, Began: began, Ended: ended, How: how})
}

func (l *faultLog) add(kind, node, detail string, begin, end time.Time, bit bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, history.Fault{
		ID: int64(len(l.faults) + 1), Kind: kind, Node: node, Detail: detail, Begin: begin, End: end, Bit: bit,
	})
}

// tally sums up counters.
type tally struct {
	mu  sync.Mutex
	sum map[string]float64
}

func (t *tally) add(counters map[string]float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sum == nil {
		t.sum = make(map[string]float64)
	}
	for name, value := range counters {
		t.sum[name] += value
	}
}
