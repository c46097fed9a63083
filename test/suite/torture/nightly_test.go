//go:build nightly

package torture_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/simtest"
	"github.com/observerd/observerd/test/suite/torture"
)

// TestLongerTorture has a fixed seed, one that no night had before, and one for
// nodes that share a file.
func TestLongerTorture(t *testing.T) {
	built := build(t)
	for name, o := range map[string]torture.Options{
		"fixed":  {Seed: 2, TTL: 5 * time.Second},
		"fresh":  {Seed: int64(simtest.Seed() >> 1), TTL: 5 * time.Second},
		"sqlite": {Seed: int64(simtest.Seed() >> 1), Coordination: torture.SQLite},
	} {
		o.Duration, o.Binary, o.Holder, o.Dir = 3*time.Minute, built.Binary, built.Holder, built.Dir
		t.Run(fmt.Sprintf("%s, seed %d", name, o.Seed), func(t *testing.T) { tortureUntilProved(t, o) })
	}
}
