package schedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/turn"
)

// maxGrace is the most that a node waits for the one before it in line.
const maxGrace = 2 * time.Second

// line is where a node stands for one turn: behind this many others, of that
// many in all.
type line struct{ place, size int }

// standIn finds the node's place in line for tick n of a type. The nodes
// that poll the type form a ring by name and boot id; the turn begins at
// (n + index of the type) and so moves by one node with each tick and each
// type. Nodes that cannot reach a source of the type come last. Those that are
// out do not count, but keep their seats: the line is the same, only shorter,
// for a node that does not know of them yet.
func standIn(nodes []turn.Node, self turn.Node, typ string, n int64, out func(bootID string) bool) line {
	able, unable := ring(nodes, self, typ)
	start := n + int64(typeIndex(nodes, self, typ))
	order := append(rotate(able, start), rotate(unable, start)...)
	order = slices.DeleteFunc(order, func(node turn.Node) bool { return node.BootID != self.BootID && out(node.BootID) })
	place := slices.IndexFunc(order, func(node turn.Node) bool { return node.BootID == self.BootID })
	return line{place: place, size: len(order)}
}

// wait is the time to give to those who stand before: a grace for each, all
// together at most a quarter of the interval.
func (l line) wait(interval time.Duration) time.Duration {
	if l.place <= 0 || l.size < 2 {
		return 0
	}
	grace := min(maxGrace, interval/4/time.Duration(l.size-1))
	return time.Duration(l.place) * grace
}

// ring returns the nodes that poll the type, those that can and those that
// cannot reach all its sources. This node is one of them, whatever was read.
func ring(nodes []turn.Node, self turn.Node, typ string) (able, unable []turn.Node) {
	for _, node := range withSelf(nodes, self) {
		switch {
		case !slices.Contains(node.Types, typ):
		case slices.Contains(node.Unreachable, typ):
			unable = append(unable, node)
		default:
			able = append(able, node)
		}
	}
	return able, unable
}

// withSelf puts what this node knows of itself in the place of what was read,
// and sorts.
func withSelf(nodes []turn.Node, self turn.Node) []turn.Node {
	all := []turn.Node{self}
	for _, node := range nodes {
		if node.BootID != self.BootID {
			all = append(all, node)
		}
	}
	slices.SortFunc(all, func(a, b turn.Node) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.BootID, b.BootID))
	})
	return all
}

// typeIndex is the type's place among all types of the cluster, so that nodes
// with different types agree on it.
func typeIndex(nodes []turn.Node, self turn.Node, typ string) int {
	var types []string
	for _, node := range withSelf(nodes, self) {
		types = append(types, node.Types...)
	}
	slices.Sort(types)
	i, _ := slices.BinarySearch(slices.Compact(types), typ)
	return i
}

// rotate returns the nodes from the one at start, wrapped around.
func rotate(nodes []turn.Node, start int64) []turn.Node {
	if len(nodes) == 0 {
		return nil
	}
	at := int(start % int64(len(nodes)))
	return append(slices.Clone(nodes[at:]), nodes[:at]...)
}
