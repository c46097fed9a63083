package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

func TestFileThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	path := write(t, minimal)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	asNobody(t)
	_, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}})
	if !errors.Is(err, fs.ErrPermission) || !strings.HasPrefix(err.Error(), path+": the file may not be read by this user") {
		t.Errorf("a file without rights: %v", err)
	}
	_, _, err = config.Load(config.Options{Kinds: wiring.Kinds(), Environ: []string{"OBSERVERD_DATABASE_URL_FILE=" + path}})
	if !errors.Is(err, fs.ErrPermission) || !strings.HasPrefix(err.Error(), "OBSERVERD_DATABASE_URL_FILE: database.url-file: ") {
		t.Errorf("a secret without rights: %v", err)
	}
	_, _, err = config.Load(config.Options{Kinds: wiring.Kinds(), Environ: []string{
		"OBSERVERD_DATABASE_URL_FILE=${CREDENTIALS_DIRECTORY}/" + filepath.Base(path), "CREDENTIALS_DIRECTORY=" + filepath.Dir(path),
	}})
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "database.url-file: the file may not be read by this user") {
		t.Errorf("a credential without rights: %v", err)
	}
	_, _, err = config.Load(config.Options{Kinds: wiring.Kinds(), Environ: []string{"OBSERVERD_DATABASE_URL_FILE=" + path, "OBSERVERD_LOG_LEVEL=loud"}})
	if err == nil || errors.Is(err, fs.ErrPermission) {
		t.Errorf("a mistake beside it: %v", err)
	}
}

// asNobody takes the right to read every file from this test's thread until
// the test ends, where root runs it.
func asNobody(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const root, nobody = 0, 65534
	runtime.LockOSThread()
	if err := syscall.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setfsuid(root); err == nil {
			runtime.UnlockOSThread() // Else the thread ends with the test.
		}
	})
}
