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
