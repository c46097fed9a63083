package check

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/observerd/observerd/test/torture/history"
)

// An operation was done at some instant from the record of it, which its
// transaction made before it committed, to the next record of the same row,
// which could only be made when the transaction had ended. An operation with
// nothing behind it may have happened at any time: it stays open.

// stillOpen is the end of an operation of which nothing is known.
const stillOpen = math.MaxInt64

// operations are those of one lock, by their begin. Writes are to the streams
// that it guards.
func (l *lockRecord) operations(streams []*stream, clients map[string]int) []porcupine.Operation {
	var all []porcupine.Operation
	add := func(o operation, from time.Time, to int64) {
		call := from.UnixNano()
		all = append(all, porcupine.Operation{ClientId: client(clients, o.node), Input: o, Call: call, Return: max(call, to)})
	}
	for i, lease := range l.leases {
		to := int64(stillOpen)
		if i+1 < len(l.leases) {
			to = l.leases[i+1].At.UnixNano() - 1
		}
		add(l.operation(lease), lease.At, to)
	}
	for _, s := range streams {
		if s.LockKey != l.key {
			continue
		}
		for i, step := range s.steps {
			to := int64(stillOpen)
			if i+1 < len(s.steps) {
				to = s.steps[i+1].At.UnixNano() - 1
			}
			if step.Node != "" {
				add(operation{action: writes, term: step.HolderTerm, node: step.Node, own: stale(step) == ""}, step.At, to)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return all
}

// operation reads one change of the lock's row.
func (l *lockRecord) operation(lease *history.Lease) operation {
	o := operation{term: lease.NewTerm, node: nobody(lease.Node)}
	switch {
	case lease.NewTerm == "":
		o.action, o.term = releases, lease.OldTerm
	case lease.OldTerm == lease.NewTerm:
		o.action = renews
	default:
		o.action, o.was = acquires, lease.OldTerm
		if g := l.byTerm[lease.NewTerm]; g != nil {
			o.fence = g.Fence
		} else {
			o.stranger = true
		}
	}
	return o
}

func client(clients map[string]int, node string) int {
	if _, ok := clients[node]; !ok {
		clients[node] = len(clients)
	}
	return clients[node]
}

// pieceSize is from which number of operations on a history is cut. The search
// takes memory that grows with the square of it.
const pieceSize = 1000

// pieces cuts a history at moments at which nothing was going on, so that each
// piece begins with what the ones before it must have left.
func pieces(all []porcupine.Operation) (parts [][]porcupine.Operation) {
	var part []porcupine.Operation
	var state lockState
	busy := int64(math.MinInt64)
	for _, op := range all {
		if len(part) >= pieceSize && op.Call > busy {
			parts = append(parts, part)
			first := operation{action: begins, term: state.term, fence: state.fence, node: "the part before"}
			part = []porcupine.Operation{{Input: first, Call: op.Call - 1, Return: op.Call - 1}}
		}
		part = append(part, op)
		busy = max(busy, op.Return)
		// In the order of their records, changes of a row follow one another.
		if o := op.Input.(operation); o.action != writes && o.action != renews {
			_, state = forced(o, state)
		}
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts
}

// forced is the state after an operation whether it was allowed or not.
func forced(o operation, s lockState) (bool, lockState) {
	if o.action == acquires {
		return true, lockState{term: o.term, fence: max(s.fence, o.fence)}
	}
	return o.apply(s)
}
