package servertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// script writes an executable file and returns its folder.
func script(t *testing.T, text string, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func product() Product {
	missing := errors.New("no server programs found")
	return Product{
		Name: "Example server", Packages: map[string]string{"apt-get": "example-server"},
		Find:    func(context.Context) (string, error) { return "", missing },
		Missing: missing, Instead: "set EXAMPLE_BINDIR",
	}
}

func TestInstallRunsEachCommandWithoutAsking(t *testing.T) {
	root := t.TempDir()
	calls := filepath.Join(root, "calls")
	bin := script(t, `echo "$DEBIAN_FRONTEND $RUNLEVEL $*" >> `+calls, root, "bin", "apt-get")
	script(t, "shift; exec \"$@\"", root, "bin", "sudo")
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	if err := product().install(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(text)), "\n")
	want := []string{"noninteractive 1 update", "noninteractive 1 install -y --no-install-recommends example-server"}
	if !slices.Equal(got, want) {
		t.Errorf("apt-get was called with %q, want %q", got, want)
	}
}

func TestInstallSaysWhatToDo(t *testing.T) {
	t.Run("no package manager", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		wantWords(t, product().install(t.Context()), "EXAMPLE_BINDIR", "Example server")
	})
	t.Run("a package manager without the package", func(t *testing.T) {
		t.Setenv("PATH", script(t, "exit 1", t.TempDir(), "bin", "apk"))
		wantWords(t, product().install(t.Context()), "no package manager known here")
	})
	t.Run("the package manager fails", func(t *testing.T) {
		bin := script(t, "echo no such mirror; exit 100", t.TempDir(), "bin", "apt-get")
		t.Setenv("PATH", bin+":/usr/bin:/bin")
		err := product().run(t.Context(), nil, []string{"apt-get", "update"})
		wantWords(t, err, "apt-get update", "no such mirror")
	})
}

func wantWords(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error %q does not mention %s", err, word)
		}
	}
}

// TestUnpack is that of anybody, on a machine whose apt has no lists and on one
// whose apt has them.
func TestUnpack(t *testing.T) {
	for name, refuses := range map[string]string{"lists": "no option is refused", "no lists": "download"} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			calls := filepath.Join(root, "calls")
			bin := script(t, `echo "$1 $5" >> `+calls+`; [ "$1" != `+"'"+refuses+"'"+` ] || exit 100
case "$*" in *"download one two") touch one.deb two.deb;; esac`, root, "bin", "apt-get")
			script(t, `mkdir -p "$3" && touch "$3/$(basename "$2")"`, root, "bin", "dpkg-deb")
			script(t, "exit 1", root, "bin", "sudo")
			t.Setenv("PATH", bin+":/usr/bin:/bin")
			p := product()
			p.Packages, p.Unpack = map[string]string{"apt-get": "one two"}, filepath.Join(root, "cache", "example")
			for range 2 { // What is there already is of no use.
				if err := p.install(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Stat(filepath.Join(p.Unpack, "two.deb")); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir(filepath.Dir(p.Unpack)); err != nil || len(left) != 1 {
				t.Errorf("left beside the folder: %v, %v", left, err)
			}
			text, err := os.ReadFile(calls)
			if err != nil {
				t.Fatal(err)
			}
			want := "download \n"
			if refuses == "download" {
				want += "-o update\n-o download\n"
			}
			if string(text) != want+want {
				t.Errorf("apt-get was called with %q, want twice %q", text, want)
			}
		})
	}
	t.Run("a mirror that does not answer", func(t *testing.T) {
		bin := script(t, "echo no such mirror; exit 100", t.TempDir(), "bin", "apt-get")
		t.Setenv("PATH", bin+":/usr/bin:/bin")
		p := product()
		p.Unpack = filepath.Join(t.TempDir(), "example")
		wantWords(t, p.install(t.Context()), "no such mirror", "EXAMPLE_BINDIR")
	})
}

func TestFolderWithTakesTheNewestVersion(t *testing.T) {
	root := t.TempDir()
	t.Setenv("PATH", filepath.Join(root, "nothing"))
	for _, version := range []string{"15", "16", "17"} {
		script(t, "", root, version, "bin", "initdb")
		if version != "17" { // It has no server: somebody installed the client alone.
			script(t, "", root, version, "bin", "postgres")
		}
	}
	pattern := []string{filepath.Join(root, "*", "bin")}
	if dir, want := FolderWith(pattern, "initdb", "postgres"), filepath.Join(root, "16", "bin"); dir != want {
		t.Errorf("found %q, want %s", dir, want)
	}
	t.Setenv("PATH", filepath.Join(root, "15", "bin"))
	if dir, want := FolderWith(pattern, "initdb", "postgres"), filepath.Join(root, "15", "bin"); dir != want {
		t.Errorf("found %q although it is in PATH, want %s", dir, want)
	}
}

func TestProgramIsNotALinkToIt(t *testing.T) {
	root := t.TempDir()
	folder := script(t, "", root, "real", "initdb")
	links := filepath.Join(root, "links")
	if err := errors.Join(os.Mkdir(links, 0o755), os.Symlink(filepath.Join(folder, "initdb"), filepath.Join(links, "initdb"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", links)
	p := product()
	p.Find, p.Commands = nil, []string{"initdb"}
	if path, err := p.Program(t.Context(), "EXAMPLE_BINDIR", "initdb"); err != nil || path != filepath.Join(folder, "initdb") {
		t.Errorf("found %q, %v, want that in %s", path, err, folder)
	}
}
