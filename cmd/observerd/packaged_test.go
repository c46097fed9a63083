package main

import (
	"bytes"
	"encoding/json"
	"os"
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
