package check

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// action is what an operation does to a lock.
type action int

const (
	// begins is the state in which a part of a history begins.
	begins action = iota
	acquires
	renews
	releases
	// writes changes a cursor, guarded by the lock.
	writes
)

// operation is the input of one operation. Outcomes are part of it: only what
// happened left a record.
type operation struct {
	action action
	// term is the lease under which it is done, was what an acquisition found.
	term, was string
	// fence is the token of an acquisition; a stranger's has none.
	fence    int64
	stranger bool
	node     string
	// own says that the writer held the lock, in its own eyes.
	own bool
}

// lockState is a lock as a register: the term that has it, empty for nobody,
// and the highest token so far.
type lockState struct {
	term  string
	fence int64
}

// lockModel is what a lock may do, one operation at a time.
func lockModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lockState{} },
		Step: func(state, input, _ any) (bool, any) {
			return input.(operation).apply(state.(lockState))
		},
		DescribeOperation: func(input, _ any) string { return input.(operation).String() },
		DescribeState: func(state any) string {
			s := state.(lockState)
			return fmt.Sprintf("%s, token %d", short(s.term), s.fence)
		},
	}
}

func (o operation) apply(s lockState) (bool, lockState) {
	switch o.action {
	case begins:
		return true, lockState{term: o.term, fence: o.fence}
	case acquires:
		if s.term != o.was || !o.stranger && o.fence <= s.fence {
			return false, s
		}
		return true, lockState{term: o.term, fence: max(s.fence, o.fence)}
	case renews:
		return s.term == o.term, s
	case releases:
		return s.term == o.term, lockState{fence: s.fence}
	default:
		return o.own && s.term == o.term, s
	}
}

// String describes the operation for people.
func (o operation) String() string {
	switch o.action {
	case begins:
		return "begins as " + short(o.term)
	case acquires:
		return fmt.Sprintf("%s acquires %s, token %d", o.node, short(o.term), o.fence)
	case renews:
		return fmt.Sprintf("%s renews %s", o.node, short(o.term))
	case releases:
		return fmt.Sprintf("%s ends %s", o.node, short(o.term))
	default:
		return fmt.Sprintf("%s writes, %s holds it", o.node, short(o.term))
	}
}

// short is enough of a term to tell it from others.
func short(term string) string {
	if term == "" {
		return "nobody"
	}
	return term[:min(8, len(term))]
}
