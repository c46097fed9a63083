package web

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/turn"
)

const (
	// stripPolls is how many polls a strip shows, as bars of one unit, up to stripHeight.
	stripPolls  = 60
	stripHeight = 8
)

// strip shows the last polls of an observer: one path for each outcome, in which a bar is as
// high as the poll took long.
type strip struct {
	OK, Poison, Failed, Title string
}

func (s strip) size() int {
	if s.Title == "" {
		return 0
	}
	return 80 + len(s.OK) + len(s.Poison) + len(s.Failed) + len(s.Title)
}

// lastPolls returns the last polls of each observer that had ended by then, oldest first: the
// script finds the poll of a bar by the same rule.
func lastPolls(past []status.PastPoll, at time.Time) map[string][]status.PastPoll {
	of := make(map[string][]status.PastPoll)
	for _, p := range slices.Backward(past) {
		if len(of[p.Observer]) < stripPolls && !p.FinishedAt.After(at) {
			of[p.Observer] = append(of[p.Observer], p)
		}
	}
	for _, polls := range of {
		slices.Reverse(polls)
	}
	return of
}

func drawStrip(polls []status.PastPoll) strip {
	var ok, poison, failed bars
	var longest time.Duration
	bad := 0
	for i, p := range polls {
		x, height := stripPolls-len(polls)+i, barHeight(p.Duration)
		longest = max(longest, p.Duration)
		switch {
		case p.Outcome != string(turn.OK):
			bad++
			failed.add(x, height)
		case p.Poison > 0:
			poison.add(x, height)
		default:
			ok.add(x, height)
		}
	}
	title := fmt.Sprintf("%d polls, %d failed, up to %s", len(polls), bad, span(longest))
	return strip{OK: ok.path(), Poison: poison.path(), Failed: failed.path(), Title: title}
}

// barHeight grows by one with each factor of four, from 4 ms on, so that polls that take
// about as long look alike.
func barHeight(d time.Duration) int {
	return min(stripHeight, 1+bits.Len64(uint64(max(0, d.Milliseconds())))/2)
}

// bars is the outline of bars; those side by side of one height are one.
type bars struct {
	text         strings.Builder
	x, width, up int
}

func (b *bars) add(x, height int) {
	if b.width > 0 && b.up == height && b.x+b.width == x {
		b.width++
		return
	}
	b.flush()
	if gap := x - b.x - b.width; gap > 0 {
		fmt.Fprintf(&b.text, "V%dh%d", stripHeight, gap)
	}
	b.x, b.width, b.up = x, 1, height
}

func (b *bars) flush() {
	if b.width > 0 {
		fmt.Fprintf(&b.text, "V%dh%d", stripHeight-b.up, b.width)
	}
}

// path returns the outline; empty without bars.
func (b *bars) path() string {
	b.flush()
	if b.text.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("M0 %d%sV%d", stripHeight, b.text.String(), stripHeight)
}

// colors is how many nodes the chart tells apart.
const colors = 8

const (
	chartSpan  = time.Hour
	chartStep  = 5 * time.Minute
	chartSteps = int(chartSpan / chartStep)
	// The chart's units.
	chartWidth, chartHeight = 600, 100
)

// work is who had the turns of the last hour.
type work struct {
	Turns int
	// Balance is how evenly the nodes share the turns, each among the nodes that polled the
	// type at the time: 100 is evenly, 0 is all by one. It is 100·(1 − Σ|had−due| / (turns·(2−2/nodes))).
	Balance int
	// Areas are the shares over time, one above the other.
	Areas []string
	Nodes []string
	Heat  []heatRow
	More  int64
	turns map[string]int
}

// heatRow is a type, with what each node had of its turns.
type heatRow struct {
	Type  string
	Cells []heatCell
	off   float64
}

// heatCell has turns, and the level of their share: 2 is an even one, and 4 twice that or more.
type heatCell struct{ Turns, Level int }

// takenTurn identifies a turn: there is a poll of each of its observers.
type takenTurn struct {
	typ string
	at  int64
}

// shareWork sums up the turns of the nodes that are there.
func shareWork(past []status.PastPoll, nodes []status.Node, now time.Time) work {
	w := work{Balance: 100, turns: make(map[string]int), Nodes: fn.Distinct(fn.Each(nodes, func(n status.Node) string { return n.Name }))}
	perStep := make([]map[string]int, chartSteps)
	due, heat := make(map[string]float64), make(map[string]map[string]int)
	for t, p := range turnsOf(past, now) {
		if !slices.Contains(w.Nodes, p.Node) {
			continue
		}
		w.Turns++
		w.turns[p.Node]++
		step := chartSteps - 1 - int(now.Sub(p.TurnAt)/chartStep)
		if perStep[step] == nil {
			perStep[step] = make(map[string]int)
		}
		perStep[step][p.Node]++
		if heat[t.typ] == nil {
			heat[t.typ] = make(map[string]int)
		}
		heat[t.typ][p.Node]++
		eligible := eligibleFor(nodes, p)
		for _, name := range eligible {
			due[name] += 1 / float64(len(eligible))
		}
	}
	off := 0.0
	for _, name := range w.Nodes {
		off += math.Abs(float64(w.turns[name]) - due[name])
	}
	if n := float64(len(w.Nodes)); n > 1 && w.Turns > 0 {
		w.Balance = int(math.Round(100 * max(0, 1-off/float64(w.Turns)/(2-2/n))))
	}
	w.Areas = areas(w.Nodes, perStep)
	w.heatMap(heat)
	return w
}

func (w work) share(node string) int {
	if w.Turns == 0 {
		return -1
	}
	return int(math.Round(100 * float64(w.turns[node]) / float64(w.Turns)))
}

// turnsOf returns a poll of each turn of the last hour.
func turnsOf(past []status.PastPoll, now time.Time) map[takenTurn]status.PastPoll {
	turns := make(map[takenTurn]status.PastPoll)
	for _, p := range past {
		if age := now.Sub(p.TurnAt); age >= 0 && age < chartSpan {
			turns[takenTurn{p.Type, p.TurnAt.UnixMilli()}] = p
		}
	}
	return turns
}

// eligibleFor returns the nodes that polled the type of a poll then, and the one that did.
func eligibleFor(nodes []status.Node, p status.PastPoll) (names []string) {
	for _, n := range nodes {
		if !slices.Contains(names, n.Name) && (n.Name == p.Node || slices.Contains(n.Types, p.Type) && !n.StartedAt.After(p.TurnAt)) {
			names = append(names, n.Name)
		}
	}
	return names
}

// areas stacks the shares of the nodes; a time without turns is left out.
func areas(nodes []string, perStep []map[string]int) []string {
	var steps []int
	for i, counts := range perStep {
		if counts != nil {
			steps = append(steps, i)
		}
	}
	if len(steps) < 2 {
		return nil
	}
	x := func(i int) int { return steps[i] * chartWidth / (chartSteps - 1) }
	below := make([]float64, len(steps))
	all := make([]string, 0, len(nodes))
	for _, node := range nodes {
		path := "M"
		for i, step := range slices.Backward(steps) { // Back along the one below.
			path += fmt.Sprintf("%d %.0f ", x(i), chartHeight*(1-below[i]))
			sum := 0
			for _, n := range perStep[step] {
				sum += n
			}
			below[i] += float64(perStep[step][node]) / float64(sum)
		}
		for i := range steps {
			path += fmt.Sprintf("%d %.0f ", x(i), chartHeight*(1-below[i]))
		}
		all = append(all, path+"z")
	}
	return all
}

// heatMap lists the types that are shared least evenly.
func (w *work) heatMap(heat map[string]map[string]int) {
	rows := make([]heatRow, 0, len(heat))
	for typ, counts := range heat {
		row, sum := heatRow{Type: typ}, 0
		for _, n := range counts {
			sum += n
		}
		for _, node := range w.Nodes {
			share := float64(counts[node]) / float64(sum)
			row.off += math.Abs(share - 1/float64(len(w.Nodes)))
			row.Cells = append(row.Cells, heatCell{counts[node], min(4, int(math.Round(2*share*float64(len(w.Nodes)))))})
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b heatRow) int { return cmp.Or(cmp.Compare(b.off, a.off), cmp.Compare(a.Type, b.Type)) })
	w.Heat, w.More = cut(rows, mostTypes)
	slices.SortFunc(w.Heat, func(a, b heatRow) int { return cmp.Compare(a.Type, b.Type) })
}
