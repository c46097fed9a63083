//go:build nightly

package balance_test

import "testing"

// TestMeasureOnAQuietMachine judges the figures too.
func TestMeasureOnAQuietMachine(t *testing.T) {
	for _, r := range measured(t).Cases {
		if r.Polls < r.Turns/2 {
			t.Errorf("%d of %d turns were had", r.Polls, r.Turns)
		}
		if r.Attempts > 5 {
			t.Errorf("%.2f attempts at locks for each poll", r.Attempts)
		}
		if r.Score < 50 {
			t.Errorf("score %.1f, %.2f to %.2f of a fair share", r.Score, r.Least, r.Most)
		}
	}
}
