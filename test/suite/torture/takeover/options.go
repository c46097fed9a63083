package takeover

import (
	"time"

	"github.com/observerd/observerd/test/kit/testbed"
)

// Kind is what happens to a node.
type Kind string

// The kinds.
const (
	Kill  Kind = "kill -9"
	Reset Kind = "connections reset and refused"
	Leave Kind = "graceful stop (SIGTERM)"
	Sleep Kind = "SIGSTOP"
	Hole  Kind = "network is a black hole"
)

// seen says whether others can see that the node is gone. Where they cannot,
// the TTL rules, and a short one is used.
func (k Kind) seen() bool { return k != Sleep && k != Hole }

// Kinds are all of them, in the order of the report.
func Kinds() []Kind { return []Kind{Kill, Reset, Leave, Sleep, Hole} }

// Options of a measurement; all are required.
type Options struct {
	// Testbed is where the clusters run.
	Testbed *testbed.Testbed
	// Samples is how often each kind happens.
	Samples map[Kind]int
	// Interval is that of the polls. Clusters side by side have a second more
	// each, so that their polls do not all begin at once.
	Interval time.Duration
	// TTL is that of locks where death can be seen, ShortTTL where it cannot.
	TTL, ShortTTL time.Duration
	// Lanes is how many clusters run side by side for each of the two TTLs.
	Lanes int
}

// nodes is the size of a cluster.
const nodes = 3

// queue is the samples of the kinds whose death can be seen, or of the others,
// in turns.
func (o Options) queue(seen bool) (all []Kind) {
	for n := range most(o.Samples) {
		for _, kind := range Kinds() {
			if kind.seen() == seen && n < o.Samples[kind] {
				all = append(all, kind)
			}
		}
	}
	return all
}

func most(samples map[Kind]int) (n int) {
	for _, count := range samples {
		n = max(n, count)
	}
	return n
}
