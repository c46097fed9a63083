package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestItSkipsWithoutAJVMAndSaysWhy(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), nil, &stdout, &stderr)
	if code != 0 || !strings.Contains(stdout.String(), "skipped: there is no java in PATH; install") || stderr.Len() > 0 {
		t.Errorf("exit code %d, %q, %q", code, stdout.String(), stderr.String())
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-nonsense"}, &stdout, &stderr); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
}

func TestURLForJDBC(t *testing.T) {
	t.Parallel()
	got, err := jdbc("postgres://java:s%26cret@127.0.0.1:5432/spring6?sslmode=disable")
	if want := "jdbc:postgresql://127.0.0.1:5432/spring6?password=s%26cret&user=java"; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
