package app_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/migrations"
)

// TestDocumentsNameTestsThatExist keeps the documents about tests true: each test
// that they name must be there.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	exist := allTests(t)
	for _, document := range []string{"reliability.md", "testing.md"} {
		page, err := os.ReadFile(filepath.Join("..", "..", "docs", document))
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1)
		if len(named) < 10 {
			t.Errorf("docs/%s names %d tests: has its form changed?", document, len(named))
		}
		for _, m := range named {
			if !exist[m[1]] {
				t.Errorf("docs/%s names %s, which does not exist", document, m[1])
			}
		}
	}
}

// TestChangesNameTheMigrations keeps the paragraph true that an operator reads before
// an upgrade: the latest release that migrates names its migrations, up to the last.
func TestChangesNameTheMigrations(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, paragraph, _ := strings.Cut(string(page), "**Migrates:**")
	paragraph, _, _ = strings.Cut(paragraph, "\n\n")
	var named []string
	for _, m := range regexp.MustCompile(`\(([0-9]+)\)`).FindAllStringSubmatch(paragraph, -1) {
		named = append(named, m[1])
	}
	for dialect, files := range map[string]fs.FS{"PostgreSQL": migrations.Postgres(), "SQLite": migrations.SQLite()} {
		names, err := fs.Glob(files, "*.sql")
		if err != nil {
			t.Fatal(err)
		}
		var there []string
		for _, name := range names { // as in 00020_coordination.sql
			number, _, _ := strings.Cut(name, "_")
			there = append(there, strings.TrimLeft(number, "0"))
		}
		if len(named) == 0 || !slices.Equal(named, there[max(0, len(there)-len(named)):]) {
			t.Errorf("docs/CHANGELOG.md names the migrations %q of %q for %s", named, there, dialect)
		}
	}
}

// allTests are the names of the tests of this repository.
func allTests(t *testing.T) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	found := map[string]bool{}
	visit := func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = true
		}
		return err
	}
	for _, folder := range []string{"cmd", "guard", "internal", "locks", "test"} {
		if err := filepath.WalkDir(filepath.Join("..", "..", folder), visit); err != nil {
			t.Fatal(err)
		}
	}
	return found
}
