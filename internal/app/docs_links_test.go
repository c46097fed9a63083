package app_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	// link is one of Markdown that leads to a file of the repository, or to a
	// heading.
	link = `\]\(([^)\s]+)\)`
	// made is a target that a document says to make.
	made    = "(?m)(?:`|^ *[$#] )make ([a-z/-]+)"
	target  = `(?m)^([a-z/-]+):`
	heading = `(?m)^#+ (.*)$`
)

// unnamed is what GitHub leaves out of the name of a heading.
var unnamed = regexp.MustCompile(`[^\w\- ]`)

// TestDocumentsLeadSomewhere follows the links of all documents into the
// repository, and looks for the targets that they name in the Makefile.
func TestDocumentsLeadSomewhere(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	targets := names(target, textOf(t, filepath.Join(root, "Makefile")))
	links := 0
	for _, document := range documents(t, root) {
		text := textOf(t, document)
		for to := range names(link, text) {
			if strings.Contains(to, "://") {
				continue
			}
			links++
			follow(t, document, to)
		}
		for name := range names(made, text) {
			if !targets[name] {
				t.Errorf("%s: there is no make %s", document, name)
			}
		}
	}
	if links < 50 {
		t.Errorf("the documents have %d links: has their form changed?", links)
	}
}

// documents are the README, the list of changes, and all below docs.
func documents(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		some, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(some) == 0 {
			t.Fatalf("%s: %d documents, %v", pattern, len(some), err)
		}
		found = append(found, some...)
	}
	return found
}

// follow looks for the file, and in it for the heading, as GitHub names it.
func follow(t *testing.T, document, to string) {
	t.Helper()
	name, anchor, _ := strings.Cut(to, "#")
	file := document
	if name != "" {
		file = filepath.Join(filepath.Dir(document), name)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("%s: the link %s leads nowhere", document, to)
		return
	}
	if anchor == "" {
		return
	}
	for text := range names(heading, textOf(t, file)) {
		if strings.ReplaceAll(unnamed.ReplaceAllString(strings.ToLower(text), ""), " ", "-") == anchor {
			return
		}
	}
	t.Errorf("%s: the link %s leads to no heading", document, to)
}

func textOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
