package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user without rights.
const nobody = 65534

// TestFolderWithoutRights runs the program as a user who may not write its
// state folder: a daemon that waits for that right would wait for ever.
func TestFolderWithoutRights(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"run": {"run"}, "migrate": {"migrate", "up"}, "validate": {"validate"}, "status": {"status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := stateFolder(t)
			code, output := asNobody(t, folder, args...)
			if code != exitDenied {
				t.Errorf("exit code %d, want %d:\n%s", code, exitDenied, output)
			}
			if want := "database.url: " + folder + " cannot be written by this user"; !strings.Contains(output, want) {
				t.Errorf("%q is missing in:\n%s", want, output)
			}
		})
	}
}

// TestValidateOfAKeyThatMayNotBeRead has a coordination database whose URL names a file
// that this user may not read.
func TestValidateOfAKeyThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	folder := stateFolder(t)
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("database: {url: \"postgres://observerd@127.0.0.1:1/observerd?sslmode=verify-full&sslrootcert=%s/ca.pem\"}\n"+
		"sources: {warehouse: {url: \"sqlite:%[1]s/warehouse.db\"}}\nobservers: []\nsinks: [{id: screen, type: stdout}]\n", folder)
	for name, file := range map[string]struct {
		text string
		mode os.FileMode
	}{"config.yaml": {text, 0o644}, "ca.pem": {"none", 0}} {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.WriteFile(path, []byte(file.text), 0o600), os.Chmod(path, file.mode)); err != nil {
			t.Fatal(err)
		}
	}
	code, output := asNobody(t, folder, "validate")
	if want := folder + "/ca.pem: permission denied"; code != exitDenied || !strings.Contains(output, want) {
		t.Errorf("exit code %d, want %d; %q is to be in:\n%s", code, exitDenied, want, output)
	}
}

// stateFolder returns a folder with a configuration, that nobody else can write.
func stateFolder(t *testing.T) string {
	t.Helper()
	// Not in t.TempDir, whose parents are closed to other users.
	folder, err := os.MkdirTemp("", "observerd-rights-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	t.Cleanup(func() { _ = os.Chmod(folder, 0o700) })
	text, err := os.ReadFile("testdata/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "config.yaml"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o555); err != nil {
		t.Fatal(err)
	}
	return folder
}

// asNobody runs this binary as observerd without the rights of root, which may
// write anywhere.
func asNobody(t *testing.T, folder string, args ...string) (code int, output string) {
	t.Helper()
	// A path that needs no right to walk to the binary.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Args = append([]string{"observerd"}, args...)
	cmd.Dir = folder
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), both.String()
}
