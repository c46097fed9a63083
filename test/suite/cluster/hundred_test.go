//go:build nightly

package cluster_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/test/kit/waittest"
)

// cycles is how many turns of each type the two nodes share.
const cycles = 100

// TestTwoNodesOverAHundredCycles compares two nodes that share a coordination
// database with two that have one each, as if nothing guarded them: all read
// the same warehouse, which really moves.
func TestTwoNodesOverAHundredCycles(t *testing.T) {
	onBoth(t, func(t *testing.T, m memory) {
		w := openWarehouse(t)
		guarded := []*node{join(t, m, "a", w.jobs(t)...), join(t, m, "b", w.jobs(t)...)}
		alone := make([]*node, 2)
		for i := range alone {
			own := remember(t, "sqlite:"+filepath.Join(t.TempDir(), "alone.db"))
			alone[i] = join(t, own, fmt.Sprintf("alone-%d", i), w.jobs(t)...)
		}
		eventually(t, func() error { return m.shared(t, 3, []string{"a", "b"}, 1, 2, 3) })
		from := lastTurns(m.mustPolls(t), 1)[0] + 2*interval.Milliseconds()
		queries := -reads(guarded)
		unguarded := -reads(alone)
		over := awaitTurn(t, m, from+cycles*interval.Milliseconds())
		queries += reads(guarded)
		unguarded += reads(alone)
		if err := polledTwice(over); err != nil {
			t.Error(err)
		}
		if part := float64(queries) / float64(unguarded); part < 0.47 || part > 0.53 {
			t.Errorf("the source was asked %d times, by unguarded nodes %d times: %.2f, want half", queries, unguarded, part)
		}
		log, err := m.logged(t)
		must(t, err)
		if err := disorder(log); err != nil {
			t.Error(err)
		}
		if len(log) < cycles {
			t.Errorf("%d events: the warehouse hardly moved, the test proves little", len(log))
		}
		t.Logf("%d queries, unguarded %d; %d events", queries, unguarded, len(log))
	})
}

// awaitTurn waits until that turn is over and returns all polls.
func awaitTurn(t *testing.T, m memory, at int64) (polls []polled) {
	t.Helper()
	err := waittest.Within(t.Context(), cycles*interval+patience, func() (err error) {
		polls, err = m.polls(t)
		if last := lastTurns(polls, 1); err == nil && (len(last) == 0 || last[0] < at) {
			err = errNothingYet
		}
		return err
	})
	must(t, err)
	return polls
}

func reads(nodes []*node) (sum int64) {
	for _, n := range nodes {
		sum += n.reads.Load()
	}
	return sum
}
