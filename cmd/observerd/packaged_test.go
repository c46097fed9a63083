package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
)

// packagedConfig is what the packages install as /etc/observerd/config.yaml.
const packagedConfig = "../../deploy/packages/config.yaml"

// TestPackagedConfiguration sees that a fresh install has a configuration that is
// right as it is.
func TestPackagedConfiguration(t *testing.T) {
	t.Parallel()
	warnings := warningsOf(t, packagedConfig)
	if len(warnings) != 1 || !strings.Contains(warnings[0].Text, "there are no observers") {
		t.Errorf("the warnings are %+v; that there are no observers is the only one that should be", warnings)
	}
}

// TestPackagedExample sees that what is commented out there is right, too.
func TestPackagedExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(packagedConfig)
	if err != nil {
		t.Fatal(err)
	}
	head, tail, _ := strings.Cut(string(text), "sources: {}")
	uncommented := head + "sources:" + strings.NewReplacer("observers: []", "observers:", "\n#  ", "\n  ").Replace(tail)
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	for name, text := range map[string]string{file: uncommented, filepath.Join(dir, "secret_shop.password"): "secret"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if warnings := warningsOf(t, file, "CREDENTIALS_DIRECTORY="+dir); len(warnings) > 0 {
		t.Errorf("the warnings are %+v", warnings)
	}
}

// warningsOf returns the warnings of a configuration without mistakes.
func warningsOf(t *testing.T, file string, environ ...string) []config.Problem {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args := []string{"validate", "--offline", "--config", file, "-o", "json"}
	if code := run(t.Context(), args, environ, nil, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d:\n%s%s", code, stdout.String(), stderr.String())
	}
	var v struct{ Warnings []config.Problem }
	if err := json.Unmarshal(stdout.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	return v.Warnings
}

// TestPackagedCopyright sees that it says of each module where its source is: who
// distributes a program has to, under the Mozilla Public License.
func TestPackagedCopyright(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "../../deploy/packages/copyright")
	cmd.Stderr = t.Output()
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	rule := "\n" + strings.Repeat("=", 80) + "\n"
	parts := strings.Split(string(text), rule) // Headings and licences by turns.
	mozilla := 0
	for i := 1; i+1 < len(parts); i += 2 {
		heading, licence := parts[i], parts[i+1]
		module, version, _ := strings.Cut(heading, " ")
		version, _, _ = strings.Cut(version, ":")
		if i == 1 {
			if heading != "observerd: LICENSE" || !strings.Contains(licence, "Apache License") {
				t.Errorf("it begins with %q, and not with the licence of observerd", heading)
			}
			continue
		}
		if strings.HasPrefix(heading, "the Go standard library") {
			continue
		}
		if want := "\nsource, unchanged: https://proxy.golang.org/" + module + "/@v/" + version + ".zip"; !strings.HasSuffix(heading, want) {
			t.Errorf("the heading is %q, want it to end with %q", heading, want)
		}
		if strings.HasPrefix(strings.TrimSpace(licence), "Mozilla Public License") {
			mozilla++
		}
	}
	if mozilla == 0 {
		t.Error("no module has the Mozilla Public License; that of go-sql-driver is one")
	}
}
