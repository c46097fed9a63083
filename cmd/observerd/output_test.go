package main

import (
	"math"
	"testing"
	"time"

	"github.com/observerd/observerd/locks"
)

// TestAgoOfAClockThatIsAhead has a time of a host whose clock is a little ahead.
func TestAgoOfAClockThatIsAhead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	if got := ago(now, now.Add(2*time.Millisecond)); got != "0 ms ago" {
		t.Error(got)
	}
}

// TestOneLine has texts that others have written: of each a terminal shows all,
// and obeys nothing.
func TestOneLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ORD-1":                  "ORD-1",
		"two\n lines\tand a tab": "two lines and a tab",
		"k\x1b[31mred":           `k\u001b[31mred`,
		"t\x1b]0;title\a":        `t\u001b]0;title\u0007`,
		"c1 \u009b31m":           `c1 \u009b31m`,
		"turned \u202eround":     `turned \u202eround`,
		"Käse – 箱 😀":             "Käse – 箱 😀",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("oneLine(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestTimeThatIsLeftOfALock(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]string{-time.Second: "expired", 0: "expired", 20 * time.Second: "20 s", locks.Endless: "no end"} {
		if got := leftOf(locks.Found{Left: left}); got != want {
			t.Errorf("%d: %s, want %s", left, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-90 * time.Second: "-1 min 30 s", math.MaxInt64: "106751 d 23 h", math.MinInt64: "-106751 d 23 h",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%d) = %q, want %q", d, got, want)
		}
	}
}
