package check_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

const (
	interval = time.Second
	ttl      = 2 * time.Second
)

// world is a cluster that keeps every rule, and its history. It is as much of
// the product as a history shows; what happens is drawn.
type world struct {
	draw func(n int) int // a number from 0 to n-1
	now  time.Time
	run  history.Run
	rows map[string]map[string]*sourceRow
	// cursors, locks by stream: each stream has a type and a lock of its own.
	cursors map[string]*cursorRow
	locks   map[string]*lockRow
	xid     int
	ids     int64
	fence   int64
	terms   int
	turn    time.Time
}

type sourceRow struct {
	n    int64
	gone bool
}

type cursorRow struct {
	version, seq int64
	low, epoch   int64
	commit       string
	// narrow says that the stream is defined with fewer columns.
	narrow bool
	// allRead says that only gone rows are left of a reading.
	allRead  bool
	observed map[string]*observedRow
}

type observedRow struct {
	n, version int64
	gone       bool
}

type lockRow struct {
	term, node string
	touched    time.Time
}

var nodes = []string{"a", "b", "c"}

func newWorld(draw func(n int) int) *world {
	w := &world{
		draw: draw, now: time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC),
		rows: make(map[string]map[string]*sourceRow), cursors: make(map[string]*cursorRow), locks: make(map[string]*lockRow),
	}
	w.turn = w.now.Truncate(interval)
	w.run.Meta = history.Meta{
		Seed: 1, Began: w.now, Nodes: nodes, Programs: programs, Interval: interval, TTL: ttl, Planned: []string{"kill", "stop"},
	}
	for _, mode := range []history.Mode{history.ModeNew, history.ModeChange, history.ModeSnapshot} {
		name := string(mode)
		w.run.Meta.Streams = append(w.run.Meta.Streams, history.Stream{Name: name, Type: name + "-type", Mode: mode, Table: name, LockKey: name + "-lock"})
		w.rows[name] = make(map[string]*sourceRow)
		w.cursors[name] = &cursorRow{observed: make(map[string]*observedRow)}
		w.locks[name] = &lockRow{}
	}
	for _, node := range nodes {
		w.run.Lives = append(w.run.Lives, history.Life{Node: node, Began: w.now})
	}
	w.run.Counters = map[string]float64{
		"observerd_stale_commits_refused_total":                         1,
		`observerd_unknown_commits_resolved_total{outcome="committed"}`: 1,
		`observerd_unknown_commits_resolved_total{outcome="aborted"}`:   0,
		`observerd_takeovers_total{rule="session-gone"}`:                2,
	}
	return w
}

// good is a whole history in which everything happens that may.
func good(draw func(n int) int) history.Run {
	w := newWorld(draw)
	scenes := []func(stream string){
		w.calm, w.sleeper, w.killed, w.unanswered, w.unreachable, w.pause, w.reset, w.forget, w.disturbedFree, w.redefine, w.vanished, w.unfinished,
		w.readersAndWriters, w.programSleeps, w.programIsLate, w.programIsCutOff, w.programWakes, w.programDies,
	}
	for range 4 + draw(6) {
		scenes = append(scenes, scenes[draw(len(scenes))])
	}
	for _, s := range w.run.Meta.Streams {
		w.write(s.Name, 6)
		for _, i := range w.shuffled(len(scenes)) {
			scenes[i](s.Name)
			w.write(s.Name, 3)
		}
	}
	for _, s := range w.run.Meta.Streams {
		w.calm(s.Name)
		w.calm(s.Name)
	}
	w.deliver()
	w.run.Meta.Duration = w.now.Sub(w.run.Meta.Began)
	return w.run
}

func (w *world) shuffled(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := w.draw(i + 1)
		order[i], order[j] = order[j], order[i]
	}
	return order
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

func (w *world) tx() string {
	w.xid++
	return strconv.Itoa(w.xid)
}

func (w *world) id() int64 {
	w.ids++
	return w.ids
}

// write commits some versions of rows: new ones, changes, ends, returns.
func (w *world) write(stream string, n int) {
	for range n {
		w.pass(time.Millisecond)
		key := fmt.Sprintf("row-%d", w.draw(8))
		r := w.rows[stream][key]
		w.version(stream, key, r != nil && !r.gone && w.draw(4) == 0)
	}
	// One that nobody sees.
	brief := fmt.Sprintf("brief-%d", w.id())
	w.run.Writes = append(w.run.Writes,
		history.Write{Stream: stream, Key: brief, N: 1, At: w.now}, history.Write{Stream: stream, Key: brief, N: 2, Gone: true, At: w.now})
}

// nextTurn waits for the next tick.
func (w *world) nextTurn() time.Time {
	for !w.turn.After(w.now) {
		w.turn = w.turn.Add(interval)
	}
	w.now = w.turn.Add(time.Millisecond)
	return w.turn
}

func (w *world) someNode(but ...string) string {
	for {
		if node := nodes[w.draw(len(nodes))]; !slices.Contains(but, node) {
			return node
		}
	}
}

// deliver gives the sink the log.
func (w *world) deliver() {
	for _, e := range w.run.Events {
		e.Xid = ""
		w.run.Delivered = append(w.run.Delivered, e)
	}
}
