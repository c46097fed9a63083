package simtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Check runs as many histories as -rapid.checks says, each in a bubble of its
// own that must be empty at its end: a goroutine that is left fails the
// history. A failure is cut down and printed with its seed; -rapid.seed runs
// it again.
//
// The test calls t.Parallel before, if at all. Facts that must have happened
// in some history are counted in the tally and demanded with [Tally.Demand].
func Check(t *testing.T, history func(t *rapid.T, tally *Tally)) *Tally {
	t.Helper()
	prepare()
	tally := &Tally{facts: make(map[string]int)}
	began := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) { history(t, tally) })
		tally.Count(histories)
	})
	took := time.Since(began)
	n := tally.facts[histories]
	t.Logf("%d histories in %s, %.0f a minute; %s", n, took.Round(time.Millisecond), float64(n)/took.Minutes(), tally)
	return tally
}

// Seed returns the seed of the whole process, for a test that draws its numbers
// without rapid: that of -rapid.seed or RAPID_SEED, which make test fixes, or else
// one that is chosen at random. It is printed.
func Seed() uint64 {
	prepare()
	return flag.Lookup("rapid.seed").Value.(flag.Getter).Get().(uint64)
}

// Checks returns how many histories the process runs of each kind: that of -rapid.checks
// or RAPID_CHECKS.
func Checks() int {
	return flag.Lookup("rapid.checks").Value.(flag.Getter).Get().(int)
}

// prepare chooses the seed of the whole process and says so at once: a panic
// in a goroutine of the product, or a hang, ends the process without giving
// rapid a chance to tell. And rapid writes no files: the seed says it all, and
// the tree stays clean.
var prepare = sync.OnceFunc(func() {
	given := make(map[string]bool)
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["rapid.nofailfile"] {
		set("rapid.nofailfile", "true")
	}
	if seed := flag.Lookup("rapid.seed").Value.String(); seed == "0" {
		set("rapid.seed", fmt.Sprint(rand.Uint64()>>1+1))
	}
	fmt.Fprintf(os.Stderr, "simulation begins with -rapid.seed=%s\n", flag.Lookup("rapid.seed").Value)
})

func set(name, value string) {
	if err := flag.Set(name, value); err != nil {
		panic(err)
	}
}
