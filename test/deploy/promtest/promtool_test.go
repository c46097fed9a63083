package promtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgramsOfAFolder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PROMTEST_BINDIR", dir)
	if _, err := Promtool(t.Context()); !errors.Is(err, ErrNoPrograms) || !strings.Contains(err.Error(), "PROMTEST_BINDIR") {
		t.Errorf("in an empty folder: %v", err)
	}
	want := filepath.Join(dir, "promtool")
	if err := os.WriteFile(want, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := Promtool(t.Context()); got != want || err != nil {
		t.Errorf("promtool is %q, %v", got, err)
	}
	if _, err := Prometheus(t.Context()); !errors.Is(err, ErrNoPrograms) {
		t.Errorf("without a server: %v", err)
	}
}

func TestProgramsOfThePath(t *testing.T) {
	half, whole := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(half, "promtool"), filepath.Join(whole, "promtool"), filepath.Join(whole, "prometheus")} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PROMTEST_BINDIR", "")
	t.Setenv("PATH", half+string(filepath.ListSeparator)+whole)
	if got, err := Prometheus(t.Context()); got != filepath.Join(whole, "prometheus") || err != nil {
		t.Errorf("prometheus is %q, %v; want that of the folder with both programs", got, err)
	}
}
