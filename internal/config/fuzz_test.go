package config_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// FuzzLoad: for every file and environment, Load returns a
// configuration, or positioned mistakes.
func FuzzLoad(f *testing.F) {
	seeds, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, seed := range append(seeds, "../../config.yaml") {
		text, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "OBSERVERD_LOG_LEVEL=debug")
	}
	f.Add(minimal, "OBSERVERD_SOURCES_WAREHOUSE_URL=${A}")
	f.Add(variable, "KIND=order")
	for _, text := range malformed(f) {
		f.Add(text, "")
	}
	path := filepath.Join(f.TempDir(), "config.yaml")
	f.Fuzz(func(t *testing.T, text, variable string) {
		if strings.Contains(text, "-file") || strings.Contains(text, "web-config") ||
			strings.Contains(variable, "FILE") || strings.Contains(variable, "WEB_CONFIG") {
			t.Skip("would read any file of this host")
		}
		loadFuzzed(t, path, text, variable)
	})
}

// markedPassword stands in the URLs of malformed configurations.
const markedPassword = "s3cr3tMARK"

// TestMalformed: each of them is refused, and no error prints the password.
func TestMalformed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	for _, text := range malformed(t) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}})
		if err == nil || strings.Contains(err.Error(), markedPassword) {
			t.Errorf("%v of %s", err, text)
		}
	}
}

// malformed are some 600 configurations and URLs: one string in JSON a line.
func malformed(t testing.TB) (all []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/malformed.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var one string
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

func loadFuzzed(t *testing.T, path, text, variable string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}, Environ: []string{variable}})
	if err == nil {
		_, _ = cfg.Hash(), cfg.Types()
		return
	}
	var mistakes *config.Error
	if !errors.As(err, &mistakes) || len(mistakes.Problems) == 0 || cfg != nil {
		t.Fatalf("not a list of mistakes: %v, %v", cfg, err)
	}
	lines := strings.Count(text, "\n") + strings.Count(text, "\r") + strings.Count(text, "\u0085") +
		strings.Count(text, "\u2028") + strings.Count(text, "\u2029") + 1
	for _, p := range mistakes.Problems {
		if p.Text == "" || p.Line > lines || p.Origin == "" && p.Line > 0 && p.Column < 1 {
			t.Errorf("problem %+v in a text of %d lines", p, lines)
		}
	}
}
