package locktest_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	locktest.Run(t, func(*testing.T) locktest.Harness {
		m := new(locktest.Memory)
		return locktest.Harness{
			Provider: func() lock.Provider { return m },
			MinTTL:   300 * time.Millisecond,
			Expire:   func(_ *testing.T, g lock.Grant) { m.Expire(g) },
			Date:     func(_ *testing.T, g lock.Grant, ahead time.Duration) { m.Date(g, ahead) },
		}
	})
}
