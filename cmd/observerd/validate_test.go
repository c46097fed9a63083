package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const toldYAML = `
database: {url: "sqlite:%[1]s/o.db"}
sources: {w: {url: "sqlite:%[1]s/w.db"}}
observers:
  - {id: good, type: order, source: w, table: good, key: id, timestamp: at}
  - {id: wrong, type: wes, source: w, table: good, key: ident, timestamp: at}
sinks: [{id: s, type: file, path: %[1]s/events.jsonl}]
http: {listen: "0.0.0.0:1", insecure: true}
`

// TestJSONOfValidateHoldsTheText has rows, one of which cannot be read, and mistakes and
// warnings of the configuration and of a source.
func TestJSONOfValidateHoldsTheText(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	execSQL(t, filepath.Join(folder, "w.db"),
		"CREATE TABLE good (id TEXT, at TEXT, v TEXT)", "INSERT INTO good VALUES ('a', '2026-01-01', 'x'), ('b', '2026-01-02', 'y'), (NULL, '2026-01-03', 'z')")
	config := filepath.Join(folder, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, toldYAML, folder), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr := printed(t, "validate", "--config", config)
	for _, part := range []string{"  sql, without length guards", "  plan:", "  the first rows", "  1 poison row among", "1 of 2 observers is not ready"} {
		if !strings.Contains(stdout, part) {
			t.Fatalf("the text lacks %q:\n%s", part, stdout)
		}
	}
	for _, part := range []string{"warning: " + config, "warning: observer good: ", "observer wrong: "} {
		if !strings.Contains(stderr, part) {
			t.Fatalf("stderr lacks %q:\n%s", part, stderr)
		}
	}
	encoded, rest := printed(t, "validate", "--config", config, "-o", "json")
	var decoded any
	if err := json.Unmarshal([]byte(encoded), &decoded); err != nil || rest != "" {
		t.Fatal(err, rest)
	}
	held := strings.Join(leaves(decoded), "\n")
	// The words of the program's own, for which JSON has names and values of other kinds.
	own := strings.Fields("database locks in does not exist yet observer source is reachable out of reach sql, without length guards and conversions (--full-sql shows it as sent): plan: " +
		"the first rows as events of type SUBJECT TIME id at v 1 poison row among -: warning:")
	for line := range strings.Lines(stdout + stderr) {
		for _, word := range strings.Fields(line) {
			bare := strings.TrimSuffix(strings.TrimRight(word, ":;,"), ":8:39") // JSON has line and column as numbers.
			if !slices.Contains(own, word) && !strings.Contains(held, bare) {
				t.Errorf("JSON lacks %q of %q:\n%s", word, line, encoded)
			}
		}
	}
}

// leaves are all values of a JSON value, as texts.
func leaves(value any) (all []string) {
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			all = append(all, leaves(v)...)
		}
	case []any:
		for _, v := range value {
			all = append(all, leaves(v)...)
		}
	default:
		all = append(all, fmt.Sprint(value))
	}
	return all
}
