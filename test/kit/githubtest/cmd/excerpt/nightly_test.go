//go:build nightly

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
)

// TestExcerptIsOfTheNewestDescription makes the excerpt of the newest package, and compares.
func TestExcerptIsOfTheNewestDescription(t *testing.T) {
	t.Parallel()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not installed")
	}
	dir := t.TempDir()
	run := func(name string, arguments ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, arguments...)
		c.Dir = dir
		if output, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, output)
		}
	}
	run(npm, "pack", "@octokit/openapi@latest")
	packed, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(packed) != 1 {
		t.Fatal(packed, err)
	}
	run("tar", "-xzf", packed[0], "package/generated/api.github.com.json")
	type file struct {
		Operations map[string]any
		Defs       map[string]any `json:"$defs"`
	}
	read := func(text []byte, err error) (f file) {
		t.Helper()
		if err == nil {
			err = json.Unmarshal(text, &f)
		}
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	description, err := os.ReadFile(filepath.Join(dir, "package", "generated", "api.github.com.json"))
	if err != nil {
		t.Fatal(err)
	}
	newest, committed := read(excerpt(description)), read(os.ReadFile("../../testdata/openapi.json"))
	for _, name := range operations {
		if !reflect.DeepEqual(newest.Operations[name], committed.Operations[name]) {
			t.Errorf("%s differs", name)
		}
	}
	for name := range newest.Defs {
		if !reflect.DeepEqual(newest.Defs[name], committed.Defs[name]) {
			t.Errorf("schema %s differs", name)
		}
	}
}
