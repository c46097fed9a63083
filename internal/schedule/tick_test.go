package schedule_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/schedule"
)

func TestNextTurn(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339Nano, "2000-01-01T00:"+text+"Z")
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for _, tc := range []struct {
		shift    time.Duration
		at, want string
	}{
		{0, "00:00", "00:00"}, {0, "00:00.001", "00:10"}, {0, "00:09.999", "00:10"}, {0, "00:10", "00:10"},
		{3 * time.Second, "00:00", "00:03"}, {3 * time.Second, "00:03", "00:03"}, {3 * time.Second, "00:04", "00:13"},
	} {
		if got := schedule.NextTurn(10*time.Second, tc.shift, at(tc.at)); !got.Equal(at(tc.want)) {
			t.Errorf("shift %s, at %s: %s, want %s", tc.shift, tc.at, got, tc.want)
		}
	}
}
