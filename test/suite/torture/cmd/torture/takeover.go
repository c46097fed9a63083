package main

import (
	"context"
	"flag"
	"io"
	"time"

	"github.com/observerd/observerd/test/kit/testbed"
	"github.com/observerd/observerd/test/suite/torture/takeover"
)

// measureTakeover is the command "takeover": it measures how long the work of a
// node stands still that dies, sleeps, is cut off or leaves.
func measureTakeover(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("torture takeover", flag.ContinueOnError)
	flags.SetOutput(stderr)
	m := measurement{name: "takeover"}
	m.flags(flags)
	kills := flags.Int("kills", 40, "how often a node is killed; the other kinds follow from it")
	lanes := flags.Int("lanes", 3, "how many clusters run side by side for each TTL")
	if err := flags.Parse(args); err != nil {
		return usageOf(err)
	}
	some, few := max(1, *kills*3/10), max(1, *kills/5)
	return m.run(ctx, stdout, stderr, func(b *testbed.Testbed) (results, error) {
		return takeover.Measure(ctx, takeover.Options{
			Testbed: b, Lanes: *lanes, Interval: 30 * time.Second, TTL: time.Minute, ShortTTL: 10 * time.Second,
			Samples: map[takeover.Kind]int{
				takeover.Kill: *kills, takeover.Reset: some, takeover.Leave: some, takeover.Sleep: few, takeover.Hole: few,
			},
		})
	})
}
