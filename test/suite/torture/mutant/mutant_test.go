package mutant

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../../../.."

// TestEachMutantApplies applies every edit to the source as it is now. It
// fails when a line has changed that a mutant replaces: look then whether the
// step is still there, and write the edit anew.
func TestEachMutantApplies(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, m := range All() {
		if names[m.Name] {
			t.Errorf("two mutants are named %s", m.Name)
		}
		names[m.Name] = true
		if len(m.Without) == 0 || m.Shows == "" || m.Witness == "" {
			t.Errorf("%s: a mutant says what it lacks, what shows it, and by which test", m.Name)
		}
		if _, err := m.Apply(root, t.TempDir()); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
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
