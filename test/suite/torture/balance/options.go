package balance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/test/kit/testbed"
)

// Options of a measurement; all are required.
type Options struct {
	// Testbed is where the clusters run.
	Testbed *testbed.Testbed
	// Cycles is how many cycles a score is of.
	Cycles int
	// Cases are the clusters that are measured.
	Cases []Case
	// Lanes is how many clusters run side by side.
	Lanes int
}

// Case is a cluster.
type Case struct {
	Nodes, Types int
	// Spread is scheduler.observer.spread.
	Spread time.Duration
	// Partial switches each type off on about a third of the nodes.
	Partial bool
	// Change lets nodes come, go and die after the cycles that are scored.
	Change bool
}

// Cases are those of the goal, with and without nodes that lack types, and one
// in which types follow each other.
func Cases() (all []Case) {
	for _, types := range []int{50, 10, 3} { // The longest begin.
		for _, nodes := range []int{10, 3, 2} {
			all = append(all, Case{Nodes: nodes, Types: types, Change: true})
		}
	}
	return append(all,
		Case{Nodes: 10, Types: 50, Spread: 2 * time.Second},
		Case{Nodes: 10, Types: 50, Partial: true},
		Case{Nodes: 3, Types: 10, Partial: true},
		Case{Nodes: 2, Types: 3, Partial: true})
}

// Only returns those of [Cases] whose sizes are named, as in "2x3,10x50"; the
// empty text means all.
func Only(sizes string) []Case {
	all := Cases()
	if sizes == "" {
		return all
	}
	named := strings.Split(sizes, ",")
	return slices.DeleteFunc(all, func(c Case) bool {
		return !slices.Contains(named, fmt.Sprintf("%dx%d", c.Nodes, c.Types))
	})
}

// interval is that of all types: a shorter one would measure the machine.
func (c Case) interval() time.Duration {
	switch {
	case c.Types <= 3:
		return time.Second
	case c.Types <= 10:
		return 2 * time.Second
	}
	return 5 * time.Second
}

// enabled says whether a node polls a type. Each type keeps a node in any case.
func (c Case) enabled(node, typ int) bool {
	return !c.Partial || (node+typ)%3 != 0 || node == typ%c.Nodes
}

// name is that of the case's databases and folder.
func (c Case) name() string {
	name := fmt.Sprintf("balance_%d_%d", c.Nodes, c.Types)
	if c.Partial {
		name += "_partial"
	}
	if c.Spread > 0 {
		name += "_spread"
	}
	return name
}
