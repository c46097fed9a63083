package balance

import (
	"time"

	"github.com/observerd/observerd/test/kit/fairness"
)

// Figures are what a measurement has found.
type Figures struct {
	Cycles int
	Cases  []Result
}

// Result is what was found of one cluster.
type Result struct {
	Case
	// Turns is how many turns there were, Polls how many of them were had; more
	// polls than turns would be turns that were had twice.
	Turns, Polls int
	// Score is [fairness.Shares.Overall], WorstScore that of the worst type.
	Score, WorstScore float64
	// Least and Most are what a node had, as multiples of its fair share.
	Least, Most float64
	// Attempts is how many attempts at locks were sent for each poll.
	Attempts float64
	Changes  []Change
}

// Change is a node that came or went.
type Change struct {
	// What happened, in words.
	What string
	// Again says that the shares were even again; Cycles is after how many
	// cycles, the first that is due after the change being 0, and After how long
	// after the change that cycle was due.
	Again  bool
	Cycles int64
	After  time.Duration
}

// Reached says whether all scores are those of the goal.
func (f Figures) Reached() bool {
	for _, r := range f.Cases {
		if r.Score < fairness.EvenScore {
			return false
		}
	}
	return true
}
