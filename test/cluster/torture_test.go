package cluster_test

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestTwoProcessesOnOneHost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		source := openPostgres(t)
		h := newHost(t, m, source.url)
		a, b := h.start(t, "a", settings{}), h.start(t, "b", settings{})
		a.ready(t)
		b.ready(t)
		quiet := source.busy(t)
		// Long enough for the nodes to see each other and to share.
		eventually(t, func() error { return m.shared(t, 4, []string{"a", "b"}, 1, 2, 3) })
		quiet()
		checkHistory(t, m, h.sink(), source.rows(t))
		if err := polledTwice(m.mustPolls(t)); err != nil {
			t.Error(err)
		}
	})
}

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
			nodes[victim] = h.start(t, nodes[victim].name, settings{}).ready(t)
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
		n, err := m.polling(t, d.name)
		if err == nil && n > 0 {
			d.kill()
			return nil
		}
		d.signal(t, syscall.SIGCONT)
		return errors.Join(err, fmt.Errorf("%s is not polling", d.name))
	})
}

func TestKilledNodeIsReplacedAndReturns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		source := openPostgres(t)
		h := newHost(t, m, source.url)
		h.start(t, "a", settings{}).ready(t)
		b := h.start(t, "b", settings{}).ready(t)
		both := []string{"a", "b"}
		eventually(t, func() error { return m.shared(t, 3, both, 1, 2, 3) })
		b.kill()
		began := time.Now()
		eventually(t, func() error { return m.shared(t, 3, []string{"a"}, 3, 3, 3) })
		t.Logf("a polls alone %s after the end of b", time.Since(began).Round(time.Millisecond))
		h.start(t, "b", settings{}).ready(t)
		eventually(t, func() error { return m.shared(t, 4, both, 1, 2, 3) })
		checkHistory(t, m, h.sink(), source.rows(t))
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
			d.signal(t, syscall.SIGTERM)
			if code := d.ends(t, patience); code != 0 {
				t.Errorf("exit code %d", code)
			}
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
