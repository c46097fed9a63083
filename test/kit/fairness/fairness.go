// Package fairness says how evenly nodes share polls. It counts what it is given;
// simulated and real clusters are judged by it alike.
package fairness

import (
	"maps"
	"math"
	"slices"
)

// Poll is a turn of a type that a node has had.
type Poll struct {
	Type, Node string
	// Cycle is the number of the turn's tick: those of types that are due
	// together are equal, and one interval apart they differ by one.
	Cycle int64
}

// Eligible says which nodes poll a type.
type Eligible map[string][]string

// Score says how evenly the counts are shared by their nodes: 100 is evenly,
// 0 is all by one. It is 100·(1 − Σ|share−1/N| / (2−2/N)). A node alone cannot
// share, and what did not happen is shared by nobody: both are 100.
func Score(counts []int) float64 {
	n, sum := float64(len(counts)), 0
	for _, count := range counts {
		sum += count
	}
	if len(counts) < 2 || sum == 0 {
		return 100
	}
	off := 0.0
	for _, count := range counts {
		off += math.Abs(float64(count)/float64(sum) - 1/n)
	}
	return 100 * (1 - off/(2-2/n))
}

// Shares sums up who polled what.
type Shares struct {
	// Polls counts the polls of each type by node. Nodes of the type that had
	// none are there with 0.
	Polls map[string]map[string]int
}

// Share counts the polls of the given cycles, from the first on and before the
// last. Polls by a node that is not eligible for its type count under its name.
func Share(polls []Poll, eligible Eligible, first, last int64) Shares {
	s := Shares{Polls: make(map[string]map[string]int)}
	for typ, nodes := range eligible {
		s.Polls[typ] = make(map[string]int)
		for _, node := range nodes {
			s.Polls[typ][node] = 0
		}
	}
	for _, p := range polls {
		if counts := s.Polls[p.Type]; counts != nil && p.Cycle >= first && p.Cycle < last {
			counts[p.Node]++
		}
	}
	return s
}

// Types returns the score of each type, among the nodes that poll it.
func (s Shares) Types() map[string]float64 {
	scores := make(map[string]float64, len(s.Polls))
	for typ, counts := range s.Polls {
		scores[typ] = Score(slices.Collect(maps.Values(counts)))
	}
	return scores
}

// Mean is the mean of the types' scores.
func (s Shares) Mean() float64 {
	if len(s.Polls) == 0 {
		return 100
	}
	sum := 0.0
	for _, score := range s.Types() {
		sum += score
	}
	return sum / float64(len(s.Polls))
}

// Worst returns the type with the lowest score; the first by name of several.
func (s Shares) Worst() (typ string, score float64) {
	score = 100
	scores := s.Types()
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		if typ == "" || scores[name] < score-1e-9 {
			typ, score = name, scores[name]
		}
	}
	return typ, score
}

// Overall is the score of all polls together. Where types differ in the nodes
// that may poll them, equal sums are not what is fair, so each node's polls are
// compared with what it would have had if each type were shared evenly; for a
// cluster in which every node polls every type that is [Score] of the sums.
func (s Shares) Overall() float64 {
	got, fair := s.sums()
	n, sum, off := float64(len(got)), float64(s.Sum()), 0.0
	if n < 2 || sum == 0 {
		return 100
	}
	for node := range got {
		off += math.Abs(got[node]-fair[node]) / sum
	}
	return 100 * (1 - off/(2-2/n))
}

// sums are each node's polls, and what it would have had if each type were
// shared evenly.
func (s Shares) sums() (got, fair map[string]float64) {
	got, fair = make(map[string]float64), make(map[string]float64)
	for _, counts := range s.Polls {
		all := 0
		for node, n := range counts {
			got[node] += float64(n)
			all += n
		}
		for node := range counts {
			fair[node] += float64(all) / float64(len(counts))
		}
	}
	return got, fair
}

// Nodes returns each node's part of all polls, between 0 and 1.
func (s Shares) Nodes() map[string]float64 {
	parts, _ := s.sums()
	for node := range parts {
		parts[node] /= max(float64(s.Sum()), 1)
	}
	return parts
}

// Sum is the number of polls.
func (s Shares) Sum() (n int) {
	for _, counts := range s.Polls {
		for _, c := range counts {
			n += c
		}
	}
	return n
}

// Extremes are the least and the most that a node had, as a multiple of its
// fair share; 1 is fair.
func (s Shares) Extremes() (least, most float64) {
	got, fair := s.sums()
	least = math.Inf(1)
	for node := range got {
		part := got[node] / max(fair[node], 1)
		least, most = min(least, part), max(most, part)
	}
	return min(least, most), most
}
