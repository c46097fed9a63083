package pgtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// errNoBinaries means that this machine has no PostgreSQL server programs.
var errNoBinaries = errors.New("no PostgreSQL server programs (initdb, postgres) found")

// locator says where to look for the server programs. Tests narrow it down.
type locator struct {
	// bindir is looked at first and, when set, alone.
	bindir string
	// globs match the folders in which packages put several major versions
	// side by side.
	globs []string
}

func systemLocator() locator {
	return locator{
		bindir: os.Getenv("PGTEST_BINDIR"),
		globs: []string{
			"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
			"/usr/pgsql-*/bin",                   // PostgreSQL's own packages for Red Hat
			"/usr/libexec/postgresql*",           // Alpine
			"/opt/homebrew/opt/postgresql@*/bin", // macOS
			"/usr/local/opt/postgresql@*/bin",    // macOS on Intel
			"/usr/local/pgsql/bin",               // built from source
		},
	}
}

// find returns the folder that holds initdb and postgres, or errNoBinaries.
func (l locator) find(ctx context.Context) (string, error) {
	if l.bindir != "" {
		return complete(l.bindir)
	}
	if initdb, err := exec.LookPath("initdb"); err == nil {
		// Debian's wrappers and hand-made links point into the real folder.
		if program, err := filepath.EvalSymlinks(initdb); err == nil {
			if dir, err := complete(filepath.Dir(program)); err == nil {
				return dir, nil
			}
		}
	}
	if dir, ok := l.newest(); ok {
		return dir, nil
	}
	out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output()
	if err != nil {
		return "", errNoBinaries
	}
	return complete(strings.TrimSpace(string(out)))
}

// newest returns the folder with the highest major version among the globs.
func (l locator) newest() (string, bool) {
	var dirs []string
	for _, glob := range l.globs {
		matches, _ := filepath.Glob(glob) // Only a malformed pattern fails, and ours are constants.
		for _, dir := range matches {
			if _, err := complete(dir); err == nil {
				dirs = append(dirs, dir)
			}
		}
	}
	if len(dirs) == 0 {
		return "", false
	}
	return slices.MaxFunc(dirs, func(a, b string) int { return major(a) - major(b) }), true
}

// complete returns dir if it holds both programs that a cluster needs.
func complete(dir string) (string, error) {
	for _, program := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, program)); err != nil {
			return "", errNoBinaries
		}
	}
	return dir, nil
}

// major returns the first number in a path, or 0: /usr/lib/postgresql/15/bin
// is version 15, and numbers must not be compared as text.
func major(path string) int {
	digits := strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(digits[0]) // Digits alone; an overflow counts as the highest version.
	return n
}
