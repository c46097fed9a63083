package cluster_test

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
)

// kills is how often the story kills a node.
const kills = 5

func TestNodesKilledDuringPolls(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		source := openPostgres(t)
		h := newHost(t, m, source.url)
		nodes := []*daemon{h.start(t, "a", settings{}).ready(t), h.start(t, "b", settings{}).ready(t)}
		quiet := source.busy(t)
		for i := range kills {
			victim := i % len(nodes)
			killInPoll(t, m, nodes[victim])
			nodes[victim] = h.start(t, nodes[victim].Name(), settings{}).ready(t)
		}
		quiet()
		checkHistory(t, m, h.sink(), source.rows(t))
	})
}

// killInPoll kills a node at a moment at which it holds the lock of a type: it
// is stopped first, so that the look and the kill see the same.
func killInPoll(t *testing.T, m memory, d *daemon) {
	t.Helper()
	eventually(t, func() error {
		d.signal(t, syscall.SIGSTOP)
		n, err := m.polling(t, d.Name())
		if err == nil && n > 0 {
			d.Kill()
			return nil
		}
		d.signal(t, syscall.SIGCONT)
		return errors.Join(err, fmt.Errorf("%s is not polling", d.Name()))
	})
}

// TestRowGoesThereAndBack changes a row from A to B and back to A, and
// the node that polls with each step: each is a version of its own.
func TestRowGoesThereAndBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		source := openPostgres(t)
		h := newHost(t, m, source.url)
		source.exec(t, `INSERT INTO tasks VALUES ('there-and-back', '')`)
		steps := []string{"A", "B", "A"}
		for _, status := range steps {
			source.exec(t, `UPDATE tasks SET status = $1, updated_at = clock_timestamp()`, status)
			d := h.start(t, "a", settings{})
			checkHistory(t, m, h.sink(), source.rows(t))
			d.stops(t)
		}
		log, err := m.logged(t)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, e := range log {
			if e.stream == "tasks" {
				said = append(said, e.status)
			}
		}
		if !slices.Equal(said, steps) {
			t.Errorf("the events say %v, want %v", said, steps)
		}
	})
}
