package cloudevents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
)

// node is one that runs.
type node struct{ folder string }

// start starts a node in the folder, and kills it when the test ends. Its log is the test's.
func start(t *testing.T, folder, configuration string) node {
	t.Helper()
	program := filepath.Join(folder, "observerd")
	if err := daemon.Build(t.Context(), daemon.BuildOptions{Out: program}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "config.yaml"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "run")
	cmd.Dir, cmd.Stderr = folder, t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return node{folder}
}

// file is the file of the node's sink.
func (n node) file() string { return filepath.Join(n.folder, "events.jsonl") }

// lines returns the first lines of the file, as soon as there are so many.
func (n node) lines(t *testing.T, count int) []string {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		text, _ := os.ReadFile(n.file())
		if found := strings.SplitAfter(string(text), "\n"); len(found) > count {
			return found[:count]
		}
		if time.Now().After(end) {
			t.Fatalf("fewer than %d events:\n%s", count, text)
		}
	}
}
