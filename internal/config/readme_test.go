package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// TestReadme loads the configurations of the README and of "A real configuration", without a
// mistake or a warning. The first is what it promises: a database of somebody's own in seven lines.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	manual, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(string(readme))); n >= 1200 {
		t.Errorf("the README has %d words, want less than 1,200", n)
	}
	_, found, _ := strings.Cut(string(manual), "\n## A real configuration\n")
	found, _, _ = strings.Cut(found, "\n## ")
	text := string(readme) + found
	dir := t.TempDir()
	t.Chdir(dir)
	for name, secret := range map[string]string{
		"database.url": "postgres://observerd:x@db1:5432/observerd?sslmode=verify-full", "erp.url": "oracle://observerd:x@erp:1521/ERP", "shop.password": "x",
	} {
		if err := os.WriteFile(name, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) != 2 {
		t.Fatalf("the README has %d configurations, want the smallest and a real one", len(blocks))
	}
	if n := strings.Count(blocks[0][1], "\n"); n > 7 {
		t.Errorf("the smallest configuration has %d lines, want at most 7", n)
	}
	if strings.Contains(blocks[0][1], "key:") {
		t.Error("the smallest configuration names a key, which the table has")
	}
	for i, block := range blocks {
		// Of the folders it names only those of this test are there.
		local := strings.NewReplacer("/etc/observerd/", dir+"/", "/var/lib/observerd/", dir+"/").Replace(block[1])
		path := filepath.Join(dir, "config.yaml")
		if err := os.WriteFile(path, []byte(local), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, warnings, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}})
		if err != nil || len(warnings) > 0 {
			t.Errorf("configuration %d: %v, warnings %v", i+1, err, warnings)
			continue
		}
		if len(cfg.Types()) == 0 || len(cfg.Sinks) == 0 {
			t.Errorf("configuration %d polls nothing, or tells nobody", i+1)
		}
	}
}
