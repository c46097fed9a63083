package config_test

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestBadFiles loads each file of testdata/bad, which is named for its
// mistake, and compares all that is reported with the file beside it. In
// these files hunter2 is always a secret.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no bad files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			got := report(config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{filepath.ToSlash(file)}, OthersMayRead: nobody}))
			if strings.Contains(got, "hunter2") {
				t.Errorf("a secret was reported:\n%s", got)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("reported\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// nobody but this user may read the files of testdata: their mode depends on
// the checkout.
func nobody(fs.FileInfo) bool { return false }

// report is what a user sees: mistakes, then warnings.
func report(cfg *config.Config, warnings []config.Problem, err error) string {
	var b strings.Builder
	if err != nil {
		b.WriteString(err.Error() + "\n")
	}
	for _, w := range warnings {
		b.WriteString("warning: " + w.String() + "\n")
	}
	if err != nil && cfg != nil {
		b.WriteString("a configuration came with an error\n")
	}
	return b.String()
}
