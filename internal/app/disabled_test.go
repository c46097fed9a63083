package app_test

import (
	"errors"
	"testing"
	"time"
)

// TestDisabledNodeTakesNoLock covers the canary: it is ready and seen, and
// neither polls nor delivers nor cleans.
func TestDisabledNodeTakesNoLock(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p place) {
		p.config.Scheduler.Enabled = false
		p.config.Database.JanitorInterval = 10 * time.Millisecond
		node := p.start(t)
		ready(t, node)
		op := p.operator(t)
		var locks, turns int
		for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); {
			report, err := op.Report(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			locks, turns = locks+len(report.Locks), turns+len(report.Types)
			<-time.After(20 * time.Millisecond)
		}
		if locks > 0 || turns > 0 {
			t.Errorf("a node that is switched off had %d locks and %d turns", locks, turns)
		}
		eventually(t, func() error {
			report, err := op.Report(t.Context())
			if err == nil && (len(report.Nodes) != 1 || len(report.Nodes[0].Types) != 0) {
				err = errors.New("the node is not seen, or seen with types")
			}
			return err
		})
	})
}
