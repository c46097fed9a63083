package main

import (
	"fmt"
	"strings"
)

func (b *backlog) figures() []figure {
	loop, ours, bare := b.contenders[0], b.contenders[1], b.contenders[2]
	best := ours
	for _, c := range b.contenders[3:] {
		if c.rate() > best.rate() {
			best = c
		}
	}
	figures := []figure{b.against(ours, loop)}
	if best != ours {
		figures = append(figures, b.against(best, loop))
	}
	figures = append(figures, b.pace(ours, loop), memory(ours))
	for _, c := range b.contenders[1:] {
		if c != bare && c != ours && c != best {
			figures = append(figures, figure{what: c.label, value: c.String(), beside: share(c.rate(), loop.rate()) + " of the loop"})
		}
	}
	figures = append(figures,
		figure{what: loop.label, value: loop.String()},
		figure{what: bare.label, value: perSecond(bare.rate())})
	for i := range figures {
		figures[i].group = fmt.Sprintf("Backlog of %s rows, from PostgreSQL into the event log", thousands(int64(b.rows)))
	}
	return figures
}

// against says which part of the loop's rate a poll reaches.
func (b *backlog) against(c, loop *contender) figure {
	part := ratioOf(c.done, loop.done, outcome.rate)
	return figure{
		what: c.label, value: c.String(), beside: fmt.Sprintf("%.0f%% of the loop", 100*part),
		goal: "at least 60% of the loop", met: part >= goalShare,
	}
}

// pace applies to a machine on which the loop is fast enough.
func (b *backlog) pace(c, loop *contender) figure {
	f := figure{what: "rate of " + c.label, value: perSecond(c.rate()), beside: "loop " + perSecond(loop.rate())}
	if loop.rate() >= fastLoop {
		f.goal, f.met = "at least 40,000 rows/s where the loop does 80,000", c.rate() >= goalRate
	}
	return f
}

func memory(c *contender) figure {
	return figure{
		what: "peak memory of " + c.label, value: mebibytes(c.peak()),
		goal: "under 100 MiB", met: c.peak() < goalMemory,
	}
}

// String says how a side did.
func (c *contender) String() string {
	return strings.Join([]string{
		perSecond(c.rate()), mebibytes(c.peak()), fmt.Sprintf("%.1f µs CPU/row", c.cpu()),
	}, ", ")
}

func share(part, whole float64) string { return fmt.Sprintf("%.0f%%", 100*part/whole) }
func perSecond(rate float64) string    { return thousands(int64(rate)) + " rows/s" }
func mebibytes(n int64) string         { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

// thousands writes a number as people read it.
func thousands(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
