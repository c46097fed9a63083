package fileowner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config/fileowner"
)

func TestMeHasTheNumberOfTheUser(t *testing.T) {
	t.Parallel()
	if got, want := fileowner.Me(), fmt.Sprintf("uid %d)", os.Geteuid()); !strings.HasPrefix(got, "this user (") || !strings.HasSuffix(got, want) {
		t.Errorf("%q, want a text with %q", got, want)
	}
}

func TestOfAFile(t *testing.T) {
	t.Parallel()
	path := file(t, 0o640)
	got := fileowner.OfPath(path)
	if !strings.HasPrefix(got, "it belongs to ") || !strings.HasSuffix(got, " and has mode 0640") {
		t.Errorf("%q", got)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 0, 4_000_000_000); err != nil {
			t.Fatal(err)
		}
		if got := fileowner.OfPath(path); got != "it belongs to root:4000000000 and has mode 0640" {
			t.Errorf("%q", got)
		}
	}
	if got := fileowner.OfPath(path + "-none"); got != "" {
		t.Errorf("a file that is not there: %q", got)
	}
}

func TestOthersMayRead(t *testing.T) {
	t.Parallel()
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o660: false, 0o644: true, 0o604: true, 0o444: true} {
		path := file(t, mode)
		link := path + "-link"
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{path, link} {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := fileowner.OthersMayRead(info); got != want {
				t.Errorf("mode %#o of %s: %v", mode, filepath.Base(name), got)
			}
		}
	}
	null, err := os.Stat(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if fileowner.OthersMayRead(null) {
		t.Errorf("a device is no file that others may read")
	}
}

func file(t *testing.T, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}
