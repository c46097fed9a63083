package mutant

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../../../.."

// TestEachMutantCompiles applies every edit to the source as it is now. It
// fails when a line has changed that a mutant replaces: look then whether the
// step is still there, and write the edit anew.
func TestEachMutantCompiles(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, m := range All() {
		if names[m.Name] {
			t.Errorf("two mutants are named %s", m.Name)
		}
		names[m.Name] = true
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			if len(m.Without) == 0 || m.Shows == "" || m.Witness == "" {
				t.Error("a mutant says what it lacks, what shows it, and by which test")
			}
			compile(t, m)
		})
	}
}

// TestWitnessesExist follows the names of tests that stand beside mutants.
func TestWitnessesExist(t *testing.T) {
	t.Parallel()
	for _, m := range All() {
		folder, name, _ := strings.Cut(m.Witness, " ")
		files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), "func "+name+"(t *testing.T)")
		}
		if !found {
			t.Errorf("%s: there is no test %q", m.Name, m.Witness)
		}
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

func TestEditMustMatchOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.go"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	apply := func(edits ...Edit) (string, error) {
		return Mutant{Name: "m", Without: []Step{{Edits: edits}}}.Apply(folder, t.TempDir())
	}
	for _, old := range []string{"two", "three"} {
		if _, err := apply(Edit{"a.go", old, ""}); err == nil || !strings.Contains(err.Error(), "want once") {
			t.Errorf("replace %q: %v", old, err)
		}
	}
	overlay, err := apply(Edit{"a.go", "one", "two"}, Edit{"a.go", "two two two", "three"})
	if err != nil {
		t.Fatal(err)
	}
	edited, err := os.ReadFile(filepath.Join(filepath.Dir(overlay), "a.go.edited"))
	if err != nil || string(edited) != "three" {
		t.Errorf("edited to %q: %v", edited, err)
	}
}
