package torture

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// chunks are the sizes of chunks among which starts choose. The largest lets a
// backlog be copied.
var chunks = []int{100, 300, 5000}

// drawStart chooses how a process is started: every other one dies at a named
// step, unless another fault is faster, and some fall asleep there.
func drawStart(random *rand.Rand, o Options, n int) Start {
	s := Start{
		After: between(random, 200*time.Millisecond, 2*time.Second).Round(time.Millisecond),
		Chunk: chunks[random.IntN(len(chunks))],
	}
	name, hit, dice := steps[random.IntN(len(steps))], 1+random.IntN(8), random.IntN(12)
	switch {
	case n == 0 && o.Coordination == SQLite && o.wants(stopAtStep): // As stop-in-commit does with a server.
		s.Failpoints = "commit.before=stop@4"
	case n < o.Nodes: // The cluster is whole at first.
	case dice < 6 && o.wants(killAtStep):
		s.Failpoints = fmt.Sprintf("%s=kill@%d", name, hit)
	case dice >= 6 && dice < 8 && o.wants(stopAtStep):
		s.Failpoints = fmt.Sprintf("%s=stop@%d", name, hit)
	}
	if o.Failpoints != nil {
		s.Failpoints = o.Failpoints[n%len(o.Failpoints)]
	}
	if o.ChunkRows > 0 {
		s.Chunk = o.ChunkRows
	}
	return s
}
