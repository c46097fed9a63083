//go:build nightly

package nightly_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// checkout is a copy of this repository, as a clone of one commit that has all
// that lies in the work tree.
type checkout struct {
	dir string
	// umask and environ are those of whoever builds in it.
	umask   string
	environ []string
}

// packaged is what one `make packages` has built for this machine.
type packaged struct{ deb, rpm, binary string }

// newCheckout copies the work tree and commits it.
func newCheckout(t *testing.T, umask string, environ ...string) checkout {
	t.Helper()
	c := checkout{dir: filepath.Join(t.TempDir(), "observerd"), umask: umask, environ: environ}
	root := filepath.Join("..", "..", "..")
	files := host(t, soon, "git", "-c", "safe.directory=*", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	list := filepath.Join(t.TempDir(), "files")
	var present []string
	for name := range strings.SplitSeq(strings.TrimRight(files, "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			present = append(present, name)
		}
	}
	if err := os.WriteFile(list, []byte(strings.Join(present, "\x00")), 0o600); err != nil {
		t.Fatal(err)
	}
	c.run(t, "sh", "-c", `mkdir "$3" && tar -C "$1" --null -T "$2" -cf - | tar -C "$3" --no-same-permissions --no-same-owner -xf -`,
		"copy", root, list, c.dir)
	c.git(t, "init", "--quiet")
	c.commit(t, "everything")
	return c
}

// commit commits all files, always with the same author and at the same time, so
// that the same files are the same commit.
func (c checkout) commit(t *testing.T, message string) {
	t.Helper()
	c.git(t, "add", "--all")
	c.git(t, "-c", "user.name=Nobody", "-c", "user.email=nobody@example.org", "commit", "--quiet", "--message", message)
}

func (c checkout) git(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(c.run(t, append([]string{"git", "-c", "safe.directory=*", "-C", c.dir}, args...)...))
}

// packages builds the packages of a version, for the architectures or for that
// of this machine alone.
func (c checkout) packages(t *testing.T, version string, archs ...string) packaged {
	t.Helper()
	if len(archs) == 0 {
		archs = []string{runtime.GOARCH}
	}
	c.run(t, "make", "-C", c.dir, "packages", "VERSION="+version, "PACKAGE_ARCHS="+strings.Join(archs, " "))
	one := func(pattern string) string {
		found, err := filepath.Glob(filepath.Join(c.dir, "bin/packages", pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		return found[0]
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return packaged{
		deb:    one("observerd_" + version + "-*_" + runtime.GOARCH + ".deb"),
		rpm:    one("observerd-" + version + "-*." + machine + ".rpm"),
		binary: one("stage/" + runtime.GOARCH + "/observerd"),
	}
}

// run runs a command with the umask and environment of the checkout, and without
// what an outer make or git hands down.
func (c checkout) run(t *testing.T, words ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), slow)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `umask "$0"; exec "$@"`, c.umask}, words...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return strings.HasPrefix(name, "MAKE") || strings.HasPrefix(name, "GIT_") ||
			slices.Contains([]string{"MFLAGS", "VERSION", "COMMIT", "COMMIT_DATE", "SOURCE_DATE_EPOCH", "PACKAGE_ARCHS"}, name)
	})
	cmd.Env = append(cmd.Env, "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	cmd.Env = append(cmd.Env, c.environ...)
	out, err := output(cmd)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return out
}

// same asserts that two files have the same bytes.
func same(t *testing.T, one, other string) {
	t.Helper()
	a, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("%s and %s differ (%d and %d bytes), and were built of the same commit", one, other, len(a), len(b))
	}
}

// static asserts that a binary needs nothing of the system, and is for the
// machine.
func static(t *testing.T, binary string, machine elf.Machine) {
	t.Helper()
	f, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil || len(libraries) > 0 {
		t.Errorf("%s needs %v: %v", binary, libraries, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("%s has a %v header, so it is linked dynamically", binary, p.Type)
		}
	}
	if f.Machine != machine {
		t.Errorf("%s is for %v, not for %v", binary, f.Machine, machine)
	}
}

// stamped asserts what a binary says of itself.
func stamped(t *testing.T, said, version, commit, date string) {
	t.Helper()
	var v struct{ Version, Commit, Date string }
	if err := json.Unmarshal([]byte(said), &v); err != nil {
		t.Fatalf("%v in %s", err, said)
	}
	if v.Version != version || v.Commit != commit || v.Date != date {
		t.Errorf("observerd version says %+v; built were version %s and commit %s of %s", v, version, commit, date)
	}
}
