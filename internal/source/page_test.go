package source_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestTableOfValues wants each JSON value in the table of docs/events.md to be one that a
// test of its source expects.
func TestTableOfValues(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Values\n")
	table, _, _ = strings.Cut(table, "\n## ")
	code := regexp.MustCompile("`([^`]+)`")
	compared := map[string]int{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		folder, ok := map[string]string{"PostgreSQL": "postgres", "Oracle": "oracle", "MySQL, MariaDB": "mysql", "SQLite": "sqlite"}[strings.TrimSpace(cells[min(1, len(cells)-1)])]
		if !ok {
			continue
		}
		expected := testsIn(t, folder)
		for _, example := range code.FindAllStringSubmatch(cells[3], -1) {
			value := example[1]
			if !json.Valid([]byte(value)) {
				continue
			}
			compared[folder]++
			if !strings.Contains(expected, "`"+value+"`") && !strings.Contains(expected, strconv.Quote(value)) {
				t.Errorf("%s of %s: no test of internal/source/%s expects %s", strings.TrimSpace(cells[2]), strings.TrimSpace(cells[1]), folder, value)
			}
		}
	}
	if len(compared) != 4 || compared["postgres"] < 12 || compared["mysql"] < 10 {
		t.Errorf("compared %v values of each source", compared)
	}
}

// testsIn is the text of the tests in a folder.
func testsIn(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", folder, err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
