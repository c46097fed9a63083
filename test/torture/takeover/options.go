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

// Options of a measurement.
type Options struct {
	// Testbed is where the clusters run. Required.
	Testbed *testbed.Testbed
	// Samples is how often each kind happens; nil means 40 times kill -9, 12
	// times the others that can be seen and 8 times those that cannot.
	Samples map[Kind]int
	// Nodes is the size of a cluster, at least 2; 0 means 3.
	Nodes int
	// Interval is that of the polls; 0 means 30 s, the default of observerd.
	// Clusters side by side have a second more each, so that their polls do not
	// all begin at once.
	Interval time.Duration
	// TTL is that of locks where death can be seen, ShortTTL where it cannot; 0
	// means 60 s, the default of observerd, and 10 s.
	TTL, ShortTTL time.Duration
	// Lanes is how many clusters run side by side for each of the two TTLs; 0
	// means 3.
	Lanes int
}

func (o Options) withDefaults() Options {
	if o.Samples == nil {
		o.Samples = map[Kind]int{Kill: 40, Reset: 12, Leave: 12, Sleep: 8, Hole: 8}
	}
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	if o.Interval == 0 {
		o.Interval = 30 * time.Second
	}
	if o.TTL == 0 {
		o.TTL = time.Minute
	}
	if o.ShortTTL == 0 {
		o.ShortTTL = 10 * time.Second
	}
	if o.Lanes == 0 {
		o.Lanes = 3
	}
	return o
}

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
