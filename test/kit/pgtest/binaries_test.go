package pgtest

import (
	"errors"
	"os"
	"path/filepath"
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

func TestFindTakesTheNewestMajorVersion(t *testing.T) {
	root := t.TempDir()
	t.Setenv("PATH", filepath.Join(root, "nothing"))
	for _, version := range []string{"9", "15", "17"} {
		script(t, "", root, "postgresql", version, "bin", "initdb")
		if version != "17" { // It has no server: somebody installed the client alone.
			script(t, "", root, "postgresql", version, "bin", "postgres")
		}
	}
	// The digits of a temporary folder's name would count as the version.
	t.Chdir(root)
	dir, err := locator{globs: []string{"postgresql/*/bin"}}.find(t.Context())
	if want := "postgresql/15/bin"; err != nil || dir != want {
		t.Errorf("find gave %q, %v, want %s", dir, err, want)
	}
}

func TestFindPrefersPathAndFollowsLinks(t *testing.T) {
	root := t.TempDir()
	script(t, "", root, "real", "postgres")
	folder := script(t, "", root, "real", "initdb")
	links := filepath.Join(root, "links")
	if err := os.Mkdir(links, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(folder, "initdb"), filepath.Join(links, "initdb")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", links)
	if dir, err := (locator{}).find(t.Context()); err != nil || dir != folder {
		t.Errorf("find gave %q, %v, want %s", dir, err, folder)
	}
}

func TestFindAsksPgConfigLast(t *testing.T) {
	root := t.TempDir()
	script(t, "", root, "server", "postgres")
	server := script(t, "", root, "server", "initdb")
	t.Setenv("PATH", script(t, "echo "+server, root, "bin", "pg_config"))
	if dir, err := (locator{}).find(t.Context()); err != nil || dir != server {
		t.Errorf("find gave %q, %v, want %s", dir, err, server)
	}
}

func TestBindirIsNotReplacedByAnother(t *testing.T) {
	t.Setenv("PGTEST_BINDIR", t.TempDir())
	if _, err := Open(t.Context(), Options{}); !errors.Is(err, errNoBinaries) {
		t.Errorf("an empty PGTEST_BINDIR gave %v, want errNoBinaries", err)
	}
}

func TestInstallNamesTheWaysOut(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := product(locator{}).Programs(t.Context())
	wantWords(t, err, "PGTEST_BINDIR", "PGTEST_URL", "initdb")
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
