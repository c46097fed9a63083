package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestABrokenConnectionIsNoBrokenPipe tells a database that has hung up from a
// reader of stdout that has.
func TestABrokenConnectionIsNoBrokenPipe(t *testing.T) {
	t.Parallel()
	broken := os.NewSyscallError("write", syscall.EPIPE)
	for name, test := range map[string]struct {
		err    error
		code   int
		silent bool
	}{
		"stdout":     {fmt.Errorf("print: %w", &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}), exitPipe, true},
		"a verdict":  {codeError{exitFailure, fmt.Errorf("print: %w", broken)}, exitPipe, true},
		"a database": {fmt.Errorf("stop: %w", &net.OpError{Op: "write", Net: "tcp", Err: broken}), exitUnavailable, false},
	} {
		var stderr bytes.Buffer
		explain(&stderr, &cobra.Command{}, test.err)
		if code := exitCode(test.err); code != test.code || (stderr.Len() == 0) != test.silent {
			t.Errorf("%s: exit code %d, said %q", name, code, strings.TrimSpace(stderr.String()))
		}
	}
}

// TestExitCodeOfAVerdict is what 'observerd status --exit-code' ends with.
func TestExitCodeOfAVerdict(t *testing.T) {
	t.Parallel()
	down := fmt.Errorf("dial: %w", os.ErrDeadlineExceeded)
	for level, want := range map[status.Level]int{status.LevelOK: exitOK, status.LevelDegraded: 3, status.LevelFailing: 4} {
		code := exitOK
		if err := verdictError(status.Verdict{Level: level}, nil); err != nil {
			code = exitCode(err)
		}
		if unknown := exitCode(verdictError(status.Verdict{Level: level}, down)); code != want || unknown != 1 {
			t.Errorf("%s: exit codes %d and %d, want %d and 1", level, code, unknown, want)
		}
	}
}

// TestArgumentsAreText gives each kind of argument a byte that is no UTF-8. The database is
// not there: what is refused is refused before it is asked.
func TestArgumentsAreText(t *testing.T) {
	t.Parallel()
	const bad = "a\xff"
	database := "--set=database.url=postgres://nobody@127.0.0.1:1/none?sslmode=disable"
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"a text":           {[]string{"dead", "list", "--key", bad}, exitUsage, "--key is not UTF-8; use printable text"},
		"a text, repeated": {[]string{"locks", "ls", "--resource", "b", "--resource", bad}, exitUsage, "--resource is not UTF-8"},
		"a setting":        {[]string{"audit", "--set", "node.name=" + bad}, exitUsage, "--set is not UTF-8"},
		"an argument":      {[]string{"observers", "show", bad}, exitUsage, `argument "a\xff" is not UTF-8`},
		"a URL":            {[]string{"init", "mysql://u:" + secret + bad + "@h/d"}, exitUsage, "argument a URL is not UTF-8"},
		"a file":           {[]string{"audit", "--config", bad}, exitConfiguration, "the file does not exist"},
		"a reason":         {[]string{"observers", "pause", "x", "--reason", bad}, exitUnavailable, "127.0.0.1"},
		"a long reason":    {[]string{"observers", "pause", "x", "--reason", strings.Repeat("x", 1001)}, exitUsage, "--reason is longer than 1000 bytes; shorten it"},
		"a long actor":     {[]string{"sinks", "pause", "x", "--actor", strings.Repeat("x", 1001)}, exitUsage, "--actor is longer than 1000 bytes"},
		"a path":           {[]string{"exec", "--lock", "x", "--", "/none/x"}, exitNotFound, `command not found: "/none/x"; correct its path: file does not exist`},
		"a time in days":   {[]string{"observers", "pause", "x", "--for", "1d"}, exitUsage, "in h, m or s, such as 30s or 48h"},
		"a time too long":  {[]string{"observers", "pause", "x", "--for", "999999999h"}, exitUsage, "below 2562047h"},
		"a command":        {[]string{"exec", "--lock", "x", "--", bad}, exitNotFound, "command not found"},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{test.args[0], database}, test.args[1:]...)
		if code := run(t.Context(), args, nil, nil, &stdout, &stderr); code != test.code || !strings.Contains(stderr.String(), test.says) || strings.Contains(stderr.String(), secret) {
			t.Errorf("%s: exit code %d, said %q", name, code, stderr.String())
		}
	}
}

// TestWhatCannotBePrinted runs commands of each kind with a stdout that is full, and with one
// that has no reader.
func TestWhatCannotBePrinted(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	text, err := os.ReadFile("testdata/config.yaml")
	if err == nil {
		err = os.WriteFile(folder+"/config.yaml", bytes.ReplaceAll(text, []byte("sqlite:"), []byte("sqlite:"+folder+"/")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder+"/var", 0o700); err != nil {
		t.Fatal(err)
	}
	if code := run(t.Context(), []string{"migrate", "up", "--config", folder + "/config.yaml"}, nil, nil, io.Discard, os.Stderr); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	for _, words := range []string{
		"version", "--version", "version -o json", "help", "help exit-codes", "completion bash", "validate --offline", "validate --offline -o json",
		"migrate status", "migrate up", "doctor --watch 0", "doctor --watch 0 -o json", "status", "observers list", "audit", "locks ls", "observers show warehouse-orders",
	} {
		args := strings.Fields(words)
		if args[0] != "help" {
			args = append(args, "--config", folder+"/config.yaml")
		}
		for why, want := range map[syscall.Errno]int{syscall.ENOSPC: exitFailure, syscall.EPIPE: exitPipe} {
			var stderr bytes.Buffer
			code := run(t.Context(), args, nil, nil, full{why}, &stderr)
			if said := strings.Contains(stderr.String(), "observerd: write /dev/stdout: no space left"); code != want || said != (why == syscall.ENOSPC) {
				t.Errorf("%s: %v: exit code %d, said %q", words, why, code, stderr.String())
			}
		}
	}
}

// full takes no text.
type full struct{ why syscall.Errno }

func (f full) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: f.why}
}

// TestTimeoutsAreNamed ends each kind of command by its own --timeout.
func TestTimeoutsAreNamed(t *testing.T) {
	t.Parallel()
	database := "--set=database.url=" + pgtest.New(t)
	for _, words := range []string{
		"observers list", "observers pause x", "audit", "status", "dead list", "locks ls", "locks stats", "migrate status", "migrate up", "events tail", "doctor --watch 0",
	} {
		var stderr bytes.Buffer
		args := append(strings.Fields(words), "--timeout", "1ns", database)
		if code := run(t.Context(), args, nil, nil, io.Discard, &stderr); code != exitUnavailable || !strings.Contains(stderr.String(), "observerd: --timeout 1ns is over; use a longer one") {
			t.Errorf("%s: exit code %d, said %q", words, code, stderr.String())
		}
	}
}
