package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLostAndRepeatedRowsOfDebeziumAreFound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	first, second := `{"after":{"id":1}}`+"\n", `{"after":{"id":2}}`+"\n"
	for lines, complete := range map[string]bool{first + second: true, first: false, first + first: false, first + second + first: false, first + "{": false} {
		if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := hasEachOnce(path, 2); (err == nil) != complete {
			t.Errorf("of two rows, in %q, it says %v", lines, err)
		}
	}
}
