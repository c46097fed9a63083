//go:build nightly

package mutant

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func TestEachMutantCompiles(t *testing.T) {
	t.Parallel()
	for _, m := range All() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			compile(t, m)
		})
	}
}

// compile compiles the packages that the mutant changes, and no binary. Its
// flags are those of the tests, so that all others come from Go's cache.
func compile(t *testing.T, m Mutant) {
	t.Helper()
	overlay, err := m.Apply(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"build", "-tags", "failpoints", "-overlay", overlay}
	for _, e := range m.edits() {
		folder := filepath.Dir(e.File)
		if filepath.Ext(e.File) != ".go" { // Scripts are embedded by the package above them.
			folder = filepath.Dir(folder)
		}
		args = append(args, "./"+folder)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
