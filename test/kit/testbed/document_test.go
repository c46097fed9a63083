package testbed_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/test/kit/testbed"
)

func TestWriteReplacesFiguresAndLeavesWordsAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "document.md")
	document := func(figures string) string {
		return "before\n<!-- balance:begin -->" + figures + "<!-- balance:end -->\nbetween\n<!-- other:begin -->\nx\n<!-- other:end -->\nafter\n"
	}
	if err := os.WriteFile(path, []byte(document("\nold\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // The second time changes nothing.
		if err := testbed.Write(path, "balance", []byte("new\n")); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := document("\n\nnew\n\n"); string(got) != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if err := testbed.Write(path, "takeover", []byte("new")); err == nil {
		t.Error("figures were written into a document that has no place for them")
	}
}
