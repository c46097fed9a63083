package balance_test

import (
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/test/kit/testbed"
	"github.com/observerd/observerd/test/suite/torture/balance"
)

const cycles, types = 12, 3

// TestMeasure measures a small cluster of real processes over few cycles. It
// judges the instrument, not the figures: those belong to a quiet machine.
func TestMeasure(t *testing.T) {
	t.Parallel()
	for _, r := range measured(t).Cases {
		// A machine that stands still at the end makes the last cycle a later one.
		if r.Turns < cycles*types || r.Turns%types != 0 || r.Polls > r.Turns || r.Polls == 0 {
			t.Errorf("%d of %d turns were had, want no more than %d of as many", r.Polls, r.Turns, cycles*types)
		}
		if r.Attempts < 1 {
			t.Errorf("%.2f attempts at locks for each poll", r.Attempts)
		}
	}
}

func measured(t *testing.T) balance.Figures {
	t.Helper()
	folder := t.TempDir()
	binary, err := testbed.Binary(t.Context(), "", folder)
	if err != nil {
		t.Fatal(err)
	}
	b, err := testbed.Open(t.Context(), testbed.Options{Binary: binary, Folder: filepath.Join(folder, "testbed"), Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	f, err := balance.Measure(t.Context(), balance.Options{
		Testbed: b, Cycles: cycles, Lanes: 2, Cases: []balance.Case{{Nodes: 2, Types: types}, {Nodes: 2, Types: types, Partial: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", f.Markdown())
	return f
}
