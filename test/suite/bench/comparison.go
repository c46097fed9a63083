package main

import (
	"context"
	"fmt"
	"time"
)

// comparison compares ways to lock with the first of them, the bare one.
type comparison struct {
	name, group string
	// ways are in the order in which a lap takes them.
	ways []string
	// way are n connections that lock a key each.
	way func(name string, n int) side
	// bare says what the bare way does.
	bare string
	// times is how often each connection locks in a lap.
	times func(s *suite, way string) int
	// goal is that of observerd with one connection.
	goal func(taken map[string][]time.Duration) (goal string, met bool)
}

// compare lets n connections lock n keys, in each of the ways in turn.
func (c comparison) compare(ctx context.Context, s *suite, n int) ([]figure, error) {
	taken, rates := make(map[string][]time.Duration), make(map[string][]float64)
	for lap := range s.rounds*lapsPerRound + 1 {
		for _, name := range c.ways {
			ways, began := c.way(name, n), time.Now()
			took, err := together(ctx, ways, c.times(s, name))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if lap > 0 { // The first one connects.
				taken[name] = append(taken[name], median(took.taken))
				rates[name] = append(rates[name], float64(len(took.taken))/time.Since(began).Seconds())
			}
		}
	}
	connections := "1 connection"
	if n > 1 {
		connections = fmt.Sprintf("%d connections with a key each", n)
	}
	bare := taken[c.ways[0]]
	var figures []figure
	for _, name := range c.ways[1:] {
		ratio := ratioOf(taken[name], bare, func(d time.Duration) float64 { return float64(d) })
		f := figure{
			group: c.group, what: fmt.Sprintf("p50, %s, %s", name, connections),
			value:  say("%s ms, %s a second, %s times the "+c.ways[0], milliseconds(median(taken[name])), whole(median(rates[name])), decimal(ratio, 2)),
			beside: say(c.bare+" %s ms", milliseconds(median(bare))),
		}
		if name == "observerd" && n == 1 {
			goal, met := c.goal(taken)
			f.goal, f.met = goal, []bool{met}
		}
		s.progress("%s: %s: %s, %s", c.name, f.what, f.value, f.beside)
		figures = append(figures, f)
	}
	return figures, nil
}
