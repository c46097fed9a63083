package fairness_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/observerd/observerd/test/kit/fairness"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestScore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		counts []int
		want   float64
	}{
		"evenly":          {[]int{50, 50}, 100},
		"all by one":      {[]int{100, 0}, 0},
		"all by one of 3": {[]int{0, 300, 0}, 0},
		"three quarters":  {[]int{75, 25}, 50},
		"half of ten":     {[]int{1, 1, 1, 1, 1, 0, 0, 0, 0, 0}, 100 * (1 - 1/1.8)},
		"alone":           {[]int{7}, 100},
		"nobody":          {nil, 100},
		"nothing":         {[]int{0, 0}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fairness.Score(tc.counts); !near(got, tc.want) {
				t.Errorf("score %v, want %v", got, tc.want)
			}
		})
	}
}

// turns makes polls: by(cycle, type index) names the node; "" is none.
func turns(from, to int64, types []string, by func(cycle int64, typ int) string) (polls []fairness.Poll) {
	for cycle := from; cycle < to; cycle++ {
		for i, typ := range types {
			if node := by(cycle, i); node != "" {
				polls = append(polls, fairness.Poll{Type: typ, Node: node, Cycle: cycle})
			}
		}
	}
	return polls
}

// rotate is a perfect rotation over the nodes.
func rotate(nodes ...string) func(int64, int) string {
	return func(cycle int64, typ int) string { return nodes[(int(cycle)+typ)%len(nodes)] }
}

var three = []string{"inventory", "order", "wes"}

func everyone(nodes ...string) fairness.Eligible {
	e := make(fairness.Eligible)
	for _, typ := range three {
		e[typ] = nodes
	}
	return e
}

func TestSharesOfARotation(t *testing.T) {
	t.Parallel()
	polls := turns(0, 100, three, rotate("a", "b"))
	s := fairness.Share(polls, everyone("a", "b"), 10, 90)
	if got := s.Sum(); got != 240 {
		t.Errorf("%d polls in 80 cycles of 3 types", got)
	}
	if got := s.Overall(); !near(got, 100) {
		t.Errorf("overall %v", got)
	}
	if _, got := s.Worst(); !near(got, 100) {
		t.Errorf("worst type %v", got)
	}
	if parts := s.Nodes(); !near(parts["a"], 0.5) || !near(parts["b"], 0.5) {
		t.Errorf("parts %v", parts)
	}
}

// A cluster may look even and still give each type to one node.
func TestWorstTypeSeesWhatSumsHide(t *testing.T) {
	t.Parallel()
	fixed := func(_ int64, typ int) string { return []string{"a", "b", "c"}[typ] }
	s := fairness.Share(turns(0, 100, three, fixed), everyone("a", "b", "c"), 0, 100)
	if got := s.Overall(); !near(got, 100) {
		t.Errorf("overall %v", got)
	}
	if typ, got := s.Worst(); !near(got, 0) || typ == "" {
		t.Errorf("worst type %s, %v", typ, got)
	}
}

func TestTypesThatAreDisabledOnSomeNodes(t *testing.T) {
	t.Parallel()
	eligible := fairness.Eligible{"inventory": {"a", "b"}, "order": {"a", "b"}, "wes": {"b"}}
	fair := func(cycle int64, typ int) string {
		if typ == 2 {
			return "b"
		}
		return []string{"a", "b"}[(int(cycle)+typ)%2]
	}
	if got := fairness.Share(turns(0, 100, three, fair), eligible, 0, 100).Overall(); !near(got, 100) {
		t.Errorf("b alone polls wes, which it must: %v", got)
	}
	// b is spared the other types for it: equal sums, but not by the rotation.
	spared := func(_ int64, typ int) string { return []string{"a", "a", "b"}[typ] }
	if got := fairness.Share(turns(0, 100, three, spared), eligible, 0, 100).Overall(); near(got, 100) {
		t.Errorf("a polled all turns of two types: %v", got)
	}
	stranger := fairness.Share([]fairness.Poll{{Type: "wes", Node: "a"}}, eligible, 0, 1)
	if _, got := stranger.Worst(); got > 0 {
		t.Errorf("a polled a type that it must not poll: %v", got)
	}
}

func TestEvenAgain(t *testing.T) {
	t.Parallel()
	const change = 100
	before := turns(0, change, three, rotate("a", "b"))
	for name, tc := range map[string]struct {
		lag   int64 // cycles after the change until the rotation knows
		nodes []string
	}{
		"a third has come":     {5, []string{"a", "b", "c"}},
		"one of two has gone":  {3, []string{"a"}},
		"nobody noticed a lag": {0, []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := turns(change, change+tc.lag, three, rotate("a", "b"))
			after = append(after, turns(change+tc.lag, 200, three, rotate(tc.nodes...))...)
			got, ok := fairness.EvenAgain(append(before, after...), everyone(tc.nodes...), change, 200)
			if want := change + tc.lag; !ok || got > want || got < want-1 {
				t.Errorf("even again from %d (%v), want %d", got, ok, want)
			}
		})
	}
	t.Run("never", func(t *testing.T) {
		t.Parallel()
		after := turns(change, 200, three, func(int64, int) string { return "a" })
		if got, ok := fairness.EvenAgain(after, everyone("a", "b"), change, 200); ok {
			t.Errorf("even again from %d though a does it all", got)
		}
	})
	// The turns of one that has gone fall to the node behind it: even in most
	// cycles, and yet a has two of three.
	t.Run("left to a neighbour", func(t *testing.T) {
		t.Parallel()
		after := turns(change, 200, three, rotate("a", "b", "a"))
		if got, ok := fairness.EvenAgain(after, everyone("a", "b"), change, 200); ok {
			t.Errorf("even again from %d though a has two thirds", got)
		}
	})
	t.Run("turns that nobody had", func(t *testing.T) {
		t.Parallel()
		after := turns(150, 200, three, rotate("a", "b"))
		if got, ok := fairness.EvenAgain(after, everyone("a", "b"), change, 200); !ok || got != 150 {
			t.Errorf("even again from %d (%v), want 150", got, ok)
		}
	})
}

func ExampleScore() {
	fmt.Printf("%.0f\n", fairness.Score([]int{34, 33, 33}))
	fmt.Printf("%.0f\n", fairness.Score([]int{90, 5, 5}))
	// Output:
	// 99
	// 15
}
