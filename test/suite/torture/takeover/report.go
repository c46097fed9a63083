package takeover

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Markdown is the report for a document.
func (f Figures) Markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "From the strike, in the middle of a poll, to the first commit by which another of %d nodes goes on with the turn.\n\n", nodes)
	b.WriteString("| what happens | TTL | times | p50 | p95 | max | how the lease was had | goal | |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, kind := range Kinds() {
		times := f.of(kind)
		if len(times) == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %s | %s | %s |\n", kind, f.ttl(kind), len(times),
			short(Quantile(times, 0.5)), short(Quantile(times, 0.95)), short(times[len(times)-1]), f.rules(kind), f.verdict(kind))
	}
	fmt.Fprintf(&b, "\nOf %d rows %d became events, %d of them more than once.\n", f.Rows, f.Events-f.Repeated, f.Repeated)
	return b.Bytes()
}

func (f Figures) ttl(kind Kind) time.Duration {
	if kind.seen() {
		return f.TTL
	}
	return f.ShortTTL
}

func (f Figures) verdict(kind Kind) string {
	switch {
	case kind != Kill:
		return "|"
	case f.Reached():
		return "p95 under 1 s | **met**"
	}
	return "p95 under 1 s | **MISSED**"
}

// rules counts the rules by which leases of a kind were had.
func (f Figures) rules(kind Kind) string {
	counts := make(map[string]int)
	for _, s := range f.Samples {
		if s.Kind == kind {
			counts[s.Rule]++
		}
	}
	var words []string
	for _, rule := range slices.Sorted(maps.Keys(counts)) {
		name := map[string]string{"": "given back"}[rule]
		if name == "" {
			name = "`" + rule + "`"
		}
		words = append(words, fmt.Sprintf("%s: %d", name, counts[rule]))
	}
	return strings.Join(words, ", ")
}

func short(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
