package app_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// script is a script of CI that a workflow runs.
	script = regexp.MustCompile(`(?m)^ *- run: .*?(\.ci/\w+)$`)
	// used is an action of others. A commit cannot be moved, as a tag can.
	used   = regexp.MustCompile(`(?m)^ *- uses: (.*)$`)
	pinned = regexp.MustCompile(`^[\w.-]+/[\w.-]+@[0-9a-f]{40} # v[\d.]+$`)
)

// TestWorkflowsRunTheScripts holds the workflows to what they are for: each runs its
// script, may read the repository and nothing else, ends by itself, and runs no code
// of others that can change.
func TestWorkflowsRunTheScripts(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	scripts := map[string]string{"ci.yml": ".ci/run", "nightly.yml": ".ci/nightly"}
	for _, file := range files {
		name, text := filepath.Base(file), textOf(t, file)
		runs := script.FindAllStringSubmatch(text, -1)
		if len(runs) != 1 || runs[0][1] != scripts[name] {
			t.Errorf("%s runs %q, want %s", name, runs, scripts[name])
			continue
		}
		delete(scripts, name)
		if info, err := os.Stat(filepath.Join(root, runs[0][1])); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s: no program %s: %v", name, runs[0][1], err)
		}
		for _, line := range []string{"\npermissions:\n  contents: read\n\n", "\n    timeout-minutes: ", "\n    runs-on: ubuntu-24.04\n", "go-version-file: go.mod", "cache: false"} {
			if strings.Count(text, line) != 1 {
				t.Errorf("%s has not once %q", name, line)
			}
		}
		if strings.Count(text, "permissions:") != 1 || strings.Contains(text, "pull_request_target") || strings.Contains(text, "secrets.") {
			t.Errorf("%s gives more rights to what it runs than to read", name)
		}
		for _, m := range used.FindAllStringSubmatch(text, -1) {
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s: %s is no commit with its version", name, m[1])
			}
		}
	}
	for name := range scripts {
		t.Errorf("there is no workflow %s", name)
	}
}
