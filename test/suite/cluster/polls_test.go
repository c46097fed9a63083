package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/observerd/observerd/internal/turn"
)

// polled is one row of the history of polls.
type polled struct {
	typ, stream, node, outcome string
	// at is the tick of the turn, started when the poll began, both in
	// milliseconds since 1970 on the database's clock.
	at, started int64
}

// polls reads the history of polls, in order.
func (m memory) polls(t *testing.T) ([]polled, error) {
	t.Helper()
	millis := func(column string) string {
		if m.dialect == "sqlite" {
			return "CAST(round(unixepoch(" + column + ", 'subsec') * 1000) AS INTEGER)"
		}
		return "(extract(epoch FROM " + column + ") * 1000)::bigint"
	}
	var all []polled
	err := m.visit(t, `SELECT type, stream, node, outcome, `+millis("turn_at")+`, `+millis("started_at")+` FROM obs_poll ORDER BY id`,
		func(scan func(...any) error) error {
			var p polled
			err := scan(&p.typ, &p.stream, &p.node, &p.outcome, &p.at, &p.started)
			all = append(all, p)
			return err
		})
	return all, err
}

// mustPolls reads the history of polls after a story.
func (m memory) mustPolls(t *testing.T) []polled {
	t.Helper()
	all, err := m.polls(t)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// selected returns the polls for which keep holds.
func selected(polls []polled, keep func(p polled) bool) []polled {
	return slices.DeleteFunc(slices.Clone(polls), func(p polled) bool { return !keep(p) })
}

// polledTwice complains of streams that were polled twice in one turn. A poll
// that could not reach its source, or whose node defines the observer in another way
// than the cluster, has left the turn to another.
func polledTwice(polls []polled) error {
	seen := make(map[string]string)
	for _, p := range polls {
		of := fmt.Sprintf("%s at %d", p.stream, p.at)
		if p.outcome == string(turn.Unreachable) || p.outcome == string(turn.Outdated) {
			continue
		}
		if node, twice := seen[of]; twice {
			return fmt.Errorf("%s was polled by %s and by %s", of, node, p.node)
		}
		seen[of] = p.node
	}
	return nil
}

// shares counts the polls of each node in each turn.
func shares(polls []polled) map[int64]map[string]int {
	counts := make(map[int64]map[string]int)
	for _, p := range polls {
		if counts[p.at] == nil {
			counts[p.at] = make(map[string]int)
		}
		counts[p.at][p.node]++
	}
	return counts
}

// lastTurns returns the last n turns that are over for sure, oldest first:
// the newest may be under way.
func lastTurns(polls []polled, n int) []int64 {
	var turns []int64
	for at := range shares(polls) {
		turns = append(turns, at)
	}
	slices.Sort(turns)
	turns = turns[:max(0, len(turns)-1)]
	return turns[max(0, len(turns)-n):]
}

// shared complains until, in so many turns in a row, each of the nodes has
// polled as many types as it may.
func (m memory) shared(t *testing.T, turns int, nodes []string, least, most, sum int) error {
	t.Helper()
	all, err := m.polls(t)
	if err != nil {
		return err
	}
	last, counts := lastTurns(all, turns), shares(all)
	if len(last) < turns {
		return fmt.Errorf("%d turns so far", len(last))
	}
	for _, at := range last {
		total := 0
		for _, node := range nodes {
			n := counts[at][node]
			if n < least || n > most {
				return fmt.Errorf("%s polled %d types at %d, want %d to %d", node, n, at, least, most)
			}
			total += n
		}
		if total != sum || len(counts[at]) > len(nodes) {
			return fmt.Errorf("polls at %d: %v", at, counts[at])
		}
	}
	return nil
}
