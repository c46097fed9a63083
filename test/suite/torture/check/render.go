package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// String is the report for a terminal: the verdict, the figures, and what was
// wrong.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: seed %d, %s, %d nodes", r.Verdict(), r.Meta.Seed, r.Meta.Duration, len(r.Meta.Nodes))
	if r.Meta.Mutant != "" {
		fmt.Fprintf(&b, ", mutant %s", r.Meta.Mutant)
	}
	b.WriteByte('\n')
	for _, f := range r.figures() {
		fmt.Fprintf(&b, "  %-34s %s\n", f.name, f.value)
	}
	for _, reason := range r.Void {
		fmt.Fprintf(&b, "void: %s\n", reason)
	}
	for _, v := range r.Violations {
		fmt.Fprintln(&b, v)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Found)) {
		fmt.Fprintf(&b, "%s: %d in all\n", kind, r.Found[kind])
	}
	return b.String()
}

// String is one line.
func (v Violation) String() string {
	text := fmt.Sprintf("%s: %s", v.Kind, v.Subject)
	if v.Key != "" {
		text += fmt.Sprintf(" %q", v.Key)
	}
	text += ": " + v.What
	if !v.At.IsZero() {
		text += v.At.UTC().Format(" at 15:04:05.000")
	}
	return text
}

type figure struct{ name, value string }

// figures are what is published of a run.
func (r Report) figures() []figure {
	n := r.Counts
	all := []figure{
		{"rows of the source", fmt.Sprintf("%d in %d versions", n[Rows], n[Versions])},
		{"events in the log", fmt.Sprint(n[Events])},
		{"lost", share(r.Found[Lost], n[Owed])},
		{"duplicated", share(r.Found[Duplicated], n[Events])},
		{"unexpected", share(r.Found[Unexpected]+r.Found[WrongChange], n[Events])},
		{"reordered, or with gaps", share(r.Found[Reordered]+r.Found[Gap], n[Events])},
		{"half batches", share(r.Found[HalfBatch], n[Commits])},
		{"cursor backwards or torn", share(r.Found[CursorBackwards]+r.Found[CursorUnlinked], n[Commits])},
		{"stale commits applied", share(r.Found[StaleCommit]+r.Found[StaleCursor]+r.Found[PausedCommit], n[Commits])},
		{"leases stolen or resurrected", share(r.Found[StolenLease]+r.Found[ResurrectedLease]+r.Found[FreedAlive], n[Acquisitions])},
		{"fencing tokens backwards", share(r.Found[FenceBackwards], n[Acquisitions])},
		{"leases past their TTL, or freed", fmt.Sprintf("%d, %d", n[Expiries], n[Freed])},
		{"stale writes under general locks", share(r.Found[StaleWrite], n[Guarded])},
		{"general locks stolen", fmt.Sprintf("%d of %d, %d of them handed over", r.Found[StolenHold], n[Holds], n[Handovers])},
		{"polled too often", share(r.Found[PolledTooOften], n[Parts])},
		{"overlaps at the source", fmt.Sprintf("%d among the %d reads that no fault was near, %d among the %d others, longest %s",
			n[Outside], n[Calm], n[Within], n[Polls]-n[Calm], r.LongestOverlap.Round(time.Millisecond))},
		{"lost, doubled, mixed up in sink", share(
			r.Found[SinkLost]+r.Found[SinkDuplicated]+r.Found[SinkUnexpected]+r.Found[SinkReordered], n[Delivered])},
	}
	for _, counter := range slices.Sorted(maps.Keys(r.Required)) {
		all = append(all, figure{counter, fmt.Sprint(r.Required[counter])})
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		all = append(all, figure{"fault " + kind, fmt.Sprintf("%d injected, %d bit", r.Faults[kind].Injected, r.Faults[kind].Bit)})
	}
	return all
}

func share(n, all int) string { return fmt.Sprintf("%d of %d", n, all) }
