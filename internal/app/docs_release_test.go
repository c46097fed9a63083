package app_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestImageOfAReleaseHasItsSources compares what goreleaser sends to the engine with
// what the image is built from, as .dockerignore names it.
func TestImageOfAReleaseHasItsSources(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	sent := regexp.MustCompile(`(?m)^    extra_files: \[(.*)\]$`).FindStringSubmatch(textOf(t, filepath.Join(root, ".goreleaser.yaml")))
	if sent == nil {
		t.Fatal(".goreleaser.yaml names no files of the image: has its form changed?")
	}
	for path := range names(`(?m)^!([^/\n]+)`, textOf(t, filepath.Join(root, ".dockerignore"))) {
		if !slices.Contains(strings.Split(sent[1], ", "), path) {
			t.Errorf("extra_files of .goreleaser.yaml lacks %s", path)
		}
	}
}
