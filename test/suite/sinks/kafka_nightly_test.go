//go:build nightly

package sinks_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestContractOfASlowClient runs the contract with a client that waits between the first
// records of a topic and the store of its partitions. A commit in between is lost, which on a
// busy machine happens once in some thousand terms.
func TestContractOfASlowClient(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	client, mod := filepath.Join(folder, "franz-go"), filepath.Join(folder, "go.mod")
	module := bytes.TrimSpace(goCommand(t, "list", "-m", "-f", "{{.Dir}}", "github.com/twmb/franz-go"))
	if err := os.CopyFS(client, os.DirFS(string(module))); err != nil {
		t.Fatal(err)
	}
	slowDown(t, filepath.Join(client, "pkg", "kgo", "topics_and_partitions.go"))
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	goCommand(t, "mod", "edit", "-replace", "github.com/twmb/franz-go="+client, mod)
	goCommand(t, "test", "-modfile="+mod, "-count=1", "-timeout=2m", "-run=^TestContract$", ".")
}

func slowDown(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const stores = "\tdefer l.v.Store(lv)\n"
	if !bytes.Contains(text, []byte(stores)) {
		t.Fatalf("%s does not store partitions with %q any more: does EndTransaction see them now? Then learn of internal/sink/kafka can go", path, stores)
	}
	text = bytes.Replace(text, []byte(stores), []byte("\tdefer func() { time.Sleep(30 * time.Millisecond); l.v.Store(lv) }()\n"), 1)
	if !bytes.Contains(text, []byte("\t\"time\"\n")) {
		text = bytes.Replace(text, []byte("import (\n"), []byte("import (\n\t\"time\"\n"), 1)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	return out
}
