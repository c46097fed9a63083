package servertest_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// folder is a server that does nothing.
type folder struct{}

// Close implements [servertest.Server].
func (folder) Close() error { return nil }

// LogTail implements [servertest.Server].
func (folder) LogTail() string { return "" }

var fakes = servertest.Victims{
	Test: "TestFakeVictim", Env: "SERVERTEST_VICTIM_DIR",
	Open: func(_ context.Context, dir string) (servertest.Server, error) {
		return folder{}, os.Mkdir(filepath.Join(dir, "server"), 0o700)
	},
}

func TestFakeVictim(t *testing.T) {
	t.Parallel()
	fakes.Be(t)
}

// TestVictimEndsWithItsChecker ends the stdin of a victim, as the death of the tests
// does that would have killed it.
func TestVictimEndsWithItsChecker(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := servertest.OpenDir(t)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+fakes.Test+"$")
	cmd.Env = append(os.Environ(), fakes.Env+"="+dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, len("started\n"))); err != nil {
		t.Fatal(err)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the victim did not end by itself: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is left: %v", err)
	}
}

// TestFoldersOfKilledTestsAreSwept makes folders as tests leave them that are killed
// while they check victims. What somebody uses stays.
func TestFoldersOfKilledTestsAreSwept(t *testing.T) {
	t.Parallel()
	const prefix = "observerd-fake-"
	alive := ""
	kind := servertest.Kind{Prefix: prefix, Alive: func(data string) bool { return filepath.Dir(filepath.Dir(data)) == alive }}
	made := func(dir string) string {
		for _, sub := range []string{dir, filepath.Join(dir, prefix+"1"), filepath.Join(dir, prefix+"1", "data")} {
			if err := os.MkdirAll(sub, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		old := time.Now().Add(-time.Hour)
		for _, sub := range []string{filepath.Join(dir, prefix+"1"), dir} {
			if err := os.Chtimes(sub, old, old); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	left := func() string {
		dir, err := os.MkdirTemp("/tmp", "servertest-parent-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return made(dir)
	}
	dead, used := left(), made(servertest.OpenDir(t))
	alive = left()
	fresh := left()
	if err := os.Chtimes(fresh, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	parent := servertest.OpenDir(t)
	waittest.Eventually(t, 30*time.Second, func() error { // Other tests may look at it at the same time.
		w, err := servertest.NewWorkdir(kind, parent, servertest.Account{})
		if err != nil {
			return err
		}
		if _, err := os.Stat(dead); !errors.Is(err, os.ErrNotExist) {
			return errors.Join(errors.New("the folder of dead tests is left"), w.Remove())
		}
		return w.Remove()
	})
	for what, dir := range map[string]string{"in use": used, "of a server that lives": alive, "new": fresh} {
		if _, err := os.Stat(filepath.Join(dir, prefix+"1", "data")); err != nil {
			t.Errorf("the folder that is %s was swept: %v", what, err)
		}
	}
}
