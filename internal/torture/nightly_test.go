//go:build nightly

package torture_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/simtest"
)

// TestLongerTorture has a fixed seed, and one that no night had before.
func TestLongerTorture(t *testing.T) {
	binary, folder := build(t)
	for _, seed := range []int64{2, int64(simtest.Seed() >> 1)} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { tortureUntilProved(t, seed, 3*time.Minute, binary, folder) })
	}
}
