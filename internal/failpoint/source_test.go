package failpoint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/failpoint"
)

// TestNamesAreThoseOfTheSource keeps the list and the calls together: a rule
// for a point that nothing passes would never bite, and say nothing.
func TestNamesAreThoseOfTheSource(t *testing.T) {
	t.Parallel()
	calls := map[string]int{}
	for _, folder := range []string{"../../internal", "../../cmd"} {
		if err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && isHit(call) {
					calls[argument(t, path, call)]++
				}
				return true
			})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range failpoint.Names() {
		if calls[name] != 1 {
			t.Errorf("point %s is passed at %d places, want 1", name, calls[name])
		}
		delete(calls, name)
	}
	for name := range calls {
		t.Errorf("point %s is not in the list", name)
	}
}

func isHit(call *ast.CallExpr) bool {
	called, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || called.Sel.Name != "Hit" {
		return false
	}
	of, ok := called.X.(*ast.Ident)
	return ok && of.Name == "failpoint"
}

func argument(t *testing.T, path string, call *ast.CallExpr) string {
	t.Helper()
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		t.Errorf("%s: the name of a point is not written out", path)
		return ""
	}
	name, err := strconv.Unquote(literal.Value)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// TestOrdinaryBuildHasNone makes sure that what ships cannot be stopped by a
// variable, and that the tests of the other build are run.
func TestOrdinaryBuildHasNone(t *testing.T) {
	t.Parallel()
	if failpoint.Enabled {
		t.Skip("this is the build with failpoints")
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-tags", "failpoints", "-count=1", "-v", "-run", "^TestTagged", ".")
	cmd.Env = slices.Concat(os.Environ(), []string{failpoint.Variable + "=", failpoint.ClockVariable + "="})
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("tests of the build with failpoints: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestTaggedKill") {
		t.Errorf("the tests of the build with failpoints did not run:\n%s", out)
	}
}
