package app_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentsNameTestsThatExist keeps the documents about tests true: each test
// that they name must be there.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	exist := testsBelow(t, "..")
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

func testsBelow(t *testing.T, root string) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
