package balance

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/test/kit/fairness"
)

// Markdown is the report for a document.
func (f Figures) Markdown() []byte {
	var b bytes.Buffer
	cases := slices.Clone(f.Cases)
	slices.SortStableFunc(cases, func(a, c Result) int { return a.order() - c.order() })
	fmt.Fprintf(&b, "Over %d cycles. A score is `100·(1 − Σ|share−1/N| / (2−2/N))`; the goal is at least %d.\n\n", f.Cycles, fairness.EvenScore)
	b.WriteString("| nodes | types | interval | turns had | score | worst type | least and most, of a fair share | attempts at a lock for each poll | |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range cases {
		fmt.Fprintf(&b, "| %d | %s | %s | %d of %d | %.1f | %.1f | %.2f to %.2f | %.2f | %s |\n",
			r.Nodes, r.types(), r.interval(), r.Polls, r.Turns, r.Score, r.WorstScore, r.Least, r.Most, r.Attempts, r.verdict())
	}
	if !slices.ContainsFunc(cases, func(r Result) bool { return len(r.Changes) > 0 }) {
		return b.Bytes()
	}
	b.WriteString("\nTime until the shares are even again. Cycle 0 is the first that is due after the change.\n\n")
	b.WriteString("| nodes | types | interval | what happens | even from cycle | that is after |\n|---|---|---|---|---|---|\n")
	for _, r := range cases {
		for _, c := range r.Changes {
			fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", r.Nodes, r.types(), r.interval(), c.What, c.again())
		}
	}
	return b.Bytes()
}

// order puts small clusters first and special ones last.
func (r Result) order() int {
	n := 100*r.Types + r.Nodes
	if r.Partial || r.Spread > 0 {
		n += 1_000_000
	}
	return n
}

func (r Result) types() string {
	words := []string{fmt.Sprint(r.Types)}
	if r.Partial {
		words = append(words, "each on two thirds of the nodes")
	}
	if r.Spread > 0 {
		words = append(words, "spread over "+r.Spread.String())
	}
	return strings.Join(words, ", ")
}

func (r Result) verdict() string {
	if r.Score < fairness.EvenScore {
		return "**MISSED**"
	}
	return "**met**"
}

func (c Change) again() string {
	if !c.Again {
		return "never | "
	}
	return fmt.Sprintf("%d | %s", c.Cycles, c.After.Round(100*time.Millisecond))
}
