package main

import (
	"testing"
	"time"
)

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

func TestNextTry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 3, 30, 0, 0, time.UTC)
	for _, tc := range []struct {
		until time.Time
		never bool
		want  string
	}{
		{now.Add(90 * time.Second), false, "in 1m30s"},
		{now, false, "at the next poll"},
		{now.Add(-time.Hour), true, "never, until 'observerd observers resume'"},
		{now.Add(time.Hour), true, "never, until 'observerd observers resume'"},
	} {
		if got := nextTry(now, tc.until, tc.never); got != tc.want {
			t.Errorf("%v, never %v: %q, want %q", tc.until, tc.never, got, tc.want)
		}
	}
}
