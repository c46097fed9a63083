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

// waverings is how many of them may be shared unevenly or late though no stall
// of the machine was noticed.
const waverings = 5

// calm is how many cycles must pass without a stall of the machine, for the
// shares to say anything.
const calm = cycles / 2

// mostWindows is how many times those cycles are awaited, on a machine that stands
// still again and again.
const mostWindows = 3

// TestTwoNodesOverAHundredCycles compares two nodes that share a coordination
// database with two that have one each, as if nothing guarded them: all read
// the same warehouse, which really moves. It runs before the stories that kill
// processes side by side: shares say something while the machine keeps time.
func TestTwoNodesOverAHundredCycles(t *testing.T) {
	onBoth(t, func(t *testing.T, m memory) {
		machine := watchStalls(t)
		w := openWarehouse(t)
		guarded := []*node{join(t, m, "a", w.jobs(t)...), join(t, m, "b", w.jobs(t)...)}
		alone := make([]*node, 2)
		for i := range alone {
			own := remember(t, "sqlite:"+filepath.Join(t.TempDir(), "alone.db"))
			alone[i] = join(t, own, fmt.Sprintf("alone-%d", i), w.jobs(t)...)
		}
		names := []string{"a", "b"}
		eventually(t, func() error { return m.shared(t, 3, names, 1, 2, 3) })
		from := lastTurns(m.mustPolls(t), 1)[0] + 2*interval.Milliseconds()
		queries := -reads(guarded)
		unguarded := -reads(alone)
		over := awaitTurn(t, m, from+cycles*interval.Milliseconds())
		queries += reads(guarded)
		unguarded += reads(alone)
		window := selected(over, func(p polled) bool {
			return p.at >= from && p.at < from+cycles*interval.Milliseconds()
		})
		if err := polledTwice(over); err != nil {
			t.Error(err)
		}
		everyTurn(t, window, from, machine)
		if part := float64(queries) / float64(unguarded); part < 0.47 || part > 0.53 {
			t.Errorf("the source was asked %d times, by unguarded nodes %d times: %.2f, want half", queries, unguarded, part)
		}
		log, err := m.logged(t)
		if err != nil {
			t.Fatal(err)
		}
		if err := disorder(log); err != nil {
			t.Error(err)
		}
		if len(log) < cycles {
			t.Errorf("%d events: the warehouse hardly moved, the test proves little", len(log))
		}
		t.Logf("%d queries, unguarded %d; %d events", queries, unguarded, len(log))
		var quiet []polled
		counted := 0
		for windows := int64(1); counted < calm; windows++ {
			if windows > mostWindows {
				t.Fatalf("the machine kept time in %d of %d cycles: the shares cannot be judged", counted, mostWindows*cycles)
			}
			end := from + windows*cycles*interval.Milliseconds()
			quiet = selected(awaitTurn(t, m, end), func(p polled) bool { return p.at >= from && p.at < end && !machine.during(p.at) })
			counted = len(shares(quiet))
		}
		t.Logf("the shares of %d cycles are judged", counted)
		fairByType(t, quiet, names, counted)
		fairByCycle(t, quiet, names)
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
	if err != nil {
		t.Fatal(err)
	}
	return polls
}

func reads(nodes []*node) (sum int64) {
	for _, n := range nodes {
		sum += n.reads.Load()
	}
	return sum
}

// everyTurn wants every turn of each type polled, late or not, unless the machine
// stood still.
func everyTurn(t *testing.T, polls []polled, from int64, machine *stalls) {
	t.Helper()
	for _, typ := range []string{"inventory", "order", "wes"} {
		missed := 0
		for n := range int64(cycles) {
			at := from + n*interval.Milliseconds()
			if len(selected(polls, func(p polled) bool { return p.typ == typ && p.at == at })) == 0 && !machine.during(at) {
				missed++
			}
		}
		if missed > waverings {
			t.Errorf("%s was not polled in %d of %d turns", typ, missed, cycles)
		}
	}
}

// fairByType wants each node to have had 45 to 55 of 100 turns of each type.
func fairByType(t *testing.T, polls []polled, nodes []string, turns int) {
	t.Helper()
	least, most := turns*45/100, (turns*55+99)/100
	for _, typ := range []string{"inventory", "order", "wes"} {
		for _, node := range nodes {
			n := len(selected(polls, func(p polled) bool { return p.typ == typ && p.node == node }))
			if n < least || n > most {
				t.Errorf("%s polled %s %d times in %d turns, want %d to %d", node, typ, n, turns, least, most)
			}
		}
	}
}

// fairByCycle wants each node to have one or two of the three types in each
// cycle: 33 to 66%.
func fairByCycle(t *testing.T, polls []polled, nodes []string) {
	t.Helper()
	uneven := 0
	for at, counts := range shares(polls) {
		for _, node := range nodes {
			if n := counts[node]; n < 1 || n > 2 {
				uneven++
				t.Logf("at %d the shares were %v", at, counts)
				break
			}
		}
	}
	if n := len(shares(polls)); uneven > waverings*(n+cycles-1)/cycles {
		t.Errorf("%d of %d cycles were shared unevenly", uneven, n)
	}
}
