package source_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/source"
)

func TestOpenSince(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		open              time.Duration // 0 for nothing
		overlap           time.Duration
		horizon, earliest time.Duration
	}{
		"nothing open":             {0, 0, 5 * time.Second, 5 * time.Second},
		"an old transaction":       {time.Minute, 0, 65 * time.Second, time.Minute},
		"a young transaction":      {time.Second, 0, 6 * time.Second, 5 * time.Second},
		"one from the future":      {-time.Minute, 0, 5 * time.Second, 5 * time.Second},
		"a longer overlap":         {time.Minute, time.Hour, time.Hour, time.Hour},
		"a shorter overlap":        {time.Minute, time.Second, 65 * time.Second, time.Minute},
		"an overlap, nothing open": {0, time.Hour, time.Hour, time.Hour},
	} {
		var oldest time.Time
		if test.open != 0 {
			oldest = now.Add(-test.open)
		}
		horizon, earliest := source.OpenSince(now, oldest, 5*time.Second, test.overlap)
		if now.Sub(horizon) != test.horizon || now.Sub(earliest) != test.earliest {
			t.Errorf("%s: horizon %s, earliest %s behind, want %s, %s", name, now.Sub(horizon), now.Sub(earliest), test.horizon, test.earliest)
		}
	}
}
