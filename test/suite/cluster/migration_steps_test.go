package cluster_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/turn"
)

// goOn waits until the Java nodes have polled each type so often from now on.
func (r *rehearsal) goOn(t *testing.T, times int) {
	t.Helper()
	count := func(typ string) (n int) {
		for _, j := range r.javas {
			n += len(j.ends(typ))
		}
		return n
	}
	before := map[string]int{}
	for typ := range watched {
		before[typ] = count(typ)
	}
	eventually(t, func() error {
		for typ := range watched {
			if n := count(typ) - before[typ]; n < times {
				return fmt.Errorf("java has polled %s %d times, want %d", typ, n, times)
			}
		}
		return nil
	})
}

// polled waits until these nodes together have polled each type so often from
// now on, and each of them something.
func (r *rehearsal) polled(t *testing.T, times int, nodes ...string) {
	t.Helper()
	before := len(r.memory.polledSoFar(t))
	eventually(t, func() error {
		polls, err := r.memory.polls(t)
		if err != nil {
			return err
		}
		types, by := map[string]int{}, map[string]int{}
		for _, p := range polls[before:] {
			types[p.typ]++
			by[p.node]++
		}
		for typ := range watched {
			if types[typ] < times {
				return fmt.Errorf("%s was polled %d times, want %d", typ, types[typ], times)
			}
		}
		for _, node := range nodes {
			if by[node] == 0 {
				return fmt.Errorf("%s has not polled", node)
			}
		}
		return nil
	})
}

// polledSoFar is the history of polls, empty before the schema is there.
func (m memory) polledSoFar(t *testing.T) []polled {
	t.Helper()
	polls, err := m.polls(t)
	if err != nil {
		return nil
	}
	return polls
}

// check looks at the whole story: every poll went well, none was made twice in
// a turn, and no type waited for longer than it may.
func (r *rehearsal) check(t *testing.T) {
	t.Helper()
	polls := r.memory.mustPolls(t)
	if err := polledTwice(polls); err != nil {
		t.Error(err)
	}
	ends := map[string][]time.Time{}
	for _, p := range polls {
		if p.outcome != string(turn.OK) {
			t.Errorf("a poll of %s by %s ended with %s", p.stream, p.node, p.outcome)
		}
		ends[p.typ] = append(ends[p.typ], time.UnixMilli(p.started))
	}
	for typ := range watched {
		for _, j := range r.javas {
			ends[typ] = append(ends[typ], j.ends(typ)...)
		}
		slices.SortFunc(ends[typ], time.Time.Compare)
		for i, at := range ends[typ][1:] {
			if gap := at.Sub(ends[typ][i]); gap > longestGap {
				t.Errorf("%s was not polled for %s", typ, gap)
			}
		}
	}
}
