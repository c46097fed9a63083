package database_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/test/kit/lockdbtest"
)

// A program in a module of its own needs locks and locks/database, and nothing else.
func TestProgramOfAnotherModule(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, from := range map[string]string{"main.go": "testdata/worker/main.go", "go.sum": "../../go.sum"} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, name), string(text))
	}
	write(t, filepath.Join(folder, "go.mod"), `module example.com/worker

go 1.26.7

require github.com/observerd/observerd v0.0.0

replace github.com/observerd/observerd => `+root+"\n")
	cmd := exec.CommandContext(t.Context(), "go", "run", ".", lockdbtest.SQLite(t))
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOFLAGS=-mod=mod -trimpath")
	output, err := cmd.CombinedOutput()
	if err != nil || string(output) != "lock:exclusive:page:extracting:fs-1:doc-2:3 1\n" {
		t.Errorf("%v: %s", err, output)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
