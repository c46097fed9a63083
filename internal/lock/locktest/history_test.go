package locktest

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

func TestHistoryOfOneLock(t *testing.T) {
	t.Parallel()
	began := time.Now()
	held := func(mode lock.Mode, from, to time.Duration) stay {
		return stay{mode: mode, from: began.Add(from), to: began.Add(to)}
	}
	for name, tc := range map[string]struct {
		stays      []stay
		impossible bool
	}{
		"one after the other":           {[]stay{held(lock.Exclusive, 0, 5), held(lock.Exclusive, 5, 9)}, false},
		"two alone together":            {[]stay{held(lock.Exclusive, 4, 9), held(lock.Exclusive, 0, 5)}, true},
		"one alone within another":      {[]stay{held(lock.Exclusive, 0, 9), held(lock.Shared, 8, 20), held(lock.Shared, 9, 12)}, true},
		"shared together":               {[]stay{held(lock.Shared, 0, 9), held(lock.Shared, 2, 5)}, false},
		"a writer's intent and readers": {[]stay{held(lock.IntentExclusive, 0, 9), held(lock.Shared, 2, 5)}, true},
		"intents together":              {[]stay{held(lock.IntentExclusive, 0, 9), held(lock.Intent, 2, 5)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history{stays: tc.stays}
			if a, b, found := h.impossible(); found != tc.impossible {
				t.Errorf("found %t: %v, %v", found, a, b)
			}
		})
	}
}
