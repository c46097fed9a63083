package check

import (
	"maps"
	"slices"
	"strings"
)

// Plus adds up two reports, for the figures of many runs. What describes single
// violations is kept of both; the meta data are those of the second.
func (r Report) Plus(s Report) Report {
	sum := s
	sum.Counts = r.Counts.plus(s.Counts)
	sum.Found = merged(r.Found, s.Found)
	sum.Violations = slices.Concat(r.Violations, s.Violations)
	sum.Void = slices.Concat(r.Void, s.Void)
	sum.Unchecked = slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.Unchecked, s.Unchecked))))
	sum.Faults = nil
	for _, f := range slices.SortedFunc(slices.Values(slices.Concat(r.Faults, s.Faults)), func(a, b FaultCount) int { return strings.Compare(a.Kind, b.Kind) }) {
		if last := len(sum.Faults) - 1; last >= 0 && sum.Faults[last].Kind == f.Kind {
			sum.Faults[last].Injected += f.Injected
			sum.Faults[last].Bit += f.Bit
			continue
		}
		sum.Faults = append(sum.Faults, f)
	}
	sum.Required = slices.Clone(s.Required)
	for i, q := range sum.Required {
		for _, other := range r.Required {
			if other.Counter == q.Counter {
				sum.Required[i].Value += other.Value
			}
		}
	}
	return sum
}

func (n Counts) plus(m Counts) Counts {
	for _, pair := range []struct {
		sum *int
		add int
	}{
		{&n.Keys, m.Keys}, {&n.Versions, m.Versions}, {&n.Owed, m.Owed}, {&n.Missed, m.Missed},
		{&n.Events, m.Events}, {&n.Skipped, m.Skipped}, {&n.Commits, m.Commits}, {&n.Notes, m.Notes},
		{&n.Resets, m.Resets}, {&n.Pauses, m.Pauses}, {&n.Acquisitions, m.Acquisitions}, {&n.Expiries, m.Expiries},
		{&n.FreedDead, m.FreedDead}, {&n.FreedDisturbed, m.FreedDisturbed}, {&n.Turns, m.Turns}, {&n.Parts, m.Parts},
		{&n.Polls, m.Polls}, {&n.WholePolls, m.WholePolls}, {&n.Overlaps.Outside, m.Overlaps.Outside},
		{&n.Overlaps.Calm, m.Overlaps.Calm}, {&n.Overlaps.Within, m.Overlaps.Within}, {&n.Overlaps.Paired, m.Overlaps.Paired},
	} {
		*pair.sum += pair.add
	}
	n.Overlaps.Longest = max(n.Overlaps.Longest, m.Overlaps.Longest)
	n.Delivered, n.Repeated = merged(n.Delivered, m.Delivered), merged(n.Repeated, m.Repeated)
	return n
}

func merged[K comparable](a, b map[K]int) map[K]int {
	sum := maps.Clone(a)
	if sum == nil {
		sum = make(map[K]int)
	}
	for key, n := range b {
		sum[key] += n
	}
	return sum
}
