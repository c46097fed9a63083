package admin

import (
	"math"
	"testing"
)

func TestFractionOfARange(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first, at, last string
		want            float64
	}{
		"instants":      {"2026-01-01 00:00:00", "2026-01-01 06:00:00.000000", "2026-01-02 00:00:00", 0.25},
		"dates":         {"2026-01-01", "2026-01-06", "2026-01-11", 0.5},
		"ISO 8601":      {"2026-01-01T00:00:00Z", "2026-01-01T12:00:00.5Z", "2026-01-02T00:00:01Z", 0.5},
		"with a zone":   {"2026-01-01 00:00:00+01:00", "2026-01-01 12:00:00+01", "2026-01-02 00:00:00+01:00", 0.5},
		"numbers":       {"1000", "1750", "2000", 0.75},
		"fractions":     {"0.5", "1.0", "1.5", 0.5},
		"at the start":  {"1000", "1000", "2000", 0},
		"beyond":        {"1000", "3000", "2000", 1},
		"before":        {"1000", "10", "2000", 0},
		"no beginning":  {"", "1000", "2000", -1},
		"empty":         {"1000", "1000", "1000", -1},
		"other writing": {"01-JAN-26", "02-JAN-26", "03-JAN-26", -1},
	} {
		if got := fraction(tc.first, tc.at, tc.last); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
