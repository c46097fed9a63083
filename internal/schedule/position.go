package schedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/turn"
)

// maxGrace is the longest wait for one node that ranks before this one.
const maxGrace = 2 * time.Second

// position is a node's position in the queue for one turn: behind rank others, of
// size nodes in all.
type position struct{ rank, size int }

// positionOf returns the node's position for tick n of a type. The nodes that poll
// the type form a ring by name and boot id; the queue begins at
// (n + index of the type) and so moves by one node with each tick and each type.
// Nodes that cannot reach a source of the type come last. Excluded nodes do not
// count, but the order of the others stays: for a node that does not know yet that
// they are excluded, the queue is the same, only longer.
func positionOf(nodes []turn.Node, self turn.Node, typ string, n int64, excluded func(bootID string) bool) position {
	able, unable := ring(nodes, self, typ)
	start := n + int64(typeIndex(nodes, self, typ))
	queue := append(rotate(able, start), rotate(unable, start)...)
	queue = slices.DeleteFunc(queue, func(node turn.Node) bool { return node.BootID != self.BootID && excluded(node.BootID) })
	rank := slices.IndexFunc(queue, func(node turn.Node) bool { return node.BootID == self.BootID })
	return position{rank: rank, size: len(queue)}
}

// wait returns the time to leave to the nodes that rank before: a grace for each,
// all together at most a quarter of the interval.
func (p position) wait(interval time.Duration) time.Duration {
	if p.rank <= 0 || p.size < 2 {
		return 0
	}
	grace := min(maxGrace, interval/4/time.Duration(p.size-1))
	return time.Duration(p.rank) * grace
}

// ring returns the nodes that poll the type: those that can reach all its sources
// and those that cannot. This node is always one of them.
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

// withSelf replaces the stored row of this node by self, and sorts the nodes.
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

// typeIndex returns the type's index among all types of the cluster, so that nodes
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

// rotate returns the nodes beginning at start, wrapped around.
func rotate(nodes []turn.Node, start int64) []turn.Node {
	if len(nodes) == 0 {
		return nil
	}
	at := int(start % int64(len(nodes)))
	return append(slices.Clone(nodes[at:]), nodes[:at]...)
}
