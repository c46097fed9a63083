package main

import "fmt"

func (b *backlog) figures() []figure {
	loop, ours, bare := b.contenders[0], b.contenders[1], b.contenders[2]
	against := b.against(ours, loop)
	part := ratioOf(ours.done, loop.done, outcome.rate)
	against.goal, against.met = "at least 95% of the loop's rate", []bool{part >= goalShare}
	figures := []figure{against, b.pace(ours, loop), memory(ours)}
	for _, c := range b.contenders[3:] {
		figures = append(figures, b.against(c, loop))
	}
	figures = append(figures,
		figure{what: loop.label, value: loop.did()},
		figure{what: bare.label, value: say("%s rows/s", whole(bare.rate()))})
	for i := range figures {
		figures[i].group = fmt.Sprintf("Backlog of %s rows, from PostgreSQL into the event log", thousands(b.rows))
	}
	return figures
}

// against says which part of the loop's rate a poll reaches, and what it costs.
func (*backlog) against(c, loop *contender) figure {
	return figure{
		what: c.label, value: c.did(),
		beside: say("%s%% of the loop's rate, %s times its CPU",
			whole(100*ratioOf(c.done, loop.done, outcome.rate)), decimal(ratioOf(c.done, loop.done, outcome.perRow), 2)),
	}
}

// pace applies to a machine on which the loop is fast enough.
func (*backlog) pace(c, loop *contender) figure {
	f := figure{
		what: "rate of " + c.label, value: say("%s rows/s", whole(c.rate())), beside: say("loop %s rows/s", whole(loop.rate())),
		goal: "at least 40,000 rows/s where the loop does 80,000",
	}
	if loop.rate() >= fastLoop {
		f.met = []bool{c.rate() >= goalRate}
	}
	return f
}

func memory(c *contender) figure {
	return figure{
		what: "peak memory of " + c.label, value: say("%s MiB", mebibytes(c.peak())),
		goal: "under 100 MiB", met: []bool{c.peak() < goalMemory},
	}
}

// did says how a side did.
func (c *contender) did() phrase {
	return say("%s rows/s, %s MiB, %s µs CPU/row", whole(c.rate()), mebibytes(c.peak()), decimal(c.cpu(), 1))
}

func mebibytes(n int64) number { return whole(float64(n) / (1 << 20)) }

// thousands writes a number as people read it.
func thousands[T ~int | ~int64](n T) string { return whole(n).String() }
