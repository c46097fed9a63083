package servertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/waittest"
)

// Victims prove that tests which are killed leave no server of a kind behind.
// The test binary is run a second time, where its only test calls [Victims.Be].
type Victims struct {
	// Test is the name of the test that calls Be.
	Test string
	// Env names the environment variable that makes it a victim.
	Env string
	// Open starts a server below the folder dir.
	Open func(ctx context.Context, dir string) (Server, error)
	// Pid is the file of a server's process id, below its folder.
	Pid string
}

// Be is what the victim does: it starts a server, says so and waits to be
// killed. When its stdin ends, whoever would have killed it has died before, and
// it removes what there is. In an ordinary run it does nothing; [Victims.Check]
// does the work.
func (v Victims) Be(t *testing.T) {
	dir := os.Getenv(v.Env)
	if dir == "" {
		return
	}
	server, err := v.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.WriteString("started\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := errors.Join(server.Close(), os.RemoveAll(dir)); err != nil {
		t.Error(err)
	}
}

// Check kills a victim with -9: its server must not live on, and the next one
// removes the folder of the dead one.
func (v Victims) Check(t *testing.T) {
	parent := OpenDir(t)
	pid := v.kill(t, parent)
	// Its port falls silent earlier, while it still gives back its memory.
	waittest.Eventually(t, 30*time.Second, func() error {
		if Alive(pid) {
			return fmt.Errorf("the server outlived the tests that started it")
		}
		return nil
	})
	server, err := v.Open(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	WantEmpty(t, parent)
}

// kill kills a victim once its server runs, and returns the server's process id.
func (v Victims) kill(t *testing.T, parent string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+v.Test+"$")
	cmd.Env = append(os.Environ(), v.Env+"="+parent)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }() // The kernel closes it for tests that are killed.
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, len("started\n"))); err != nil {
		t.Fatalf("wait for the victim's server: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(parent, "*", v.Pid))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d servers have a file of their process id (%v), want 1", len(files), err)
	}
	pid := ReadPid(files[0])
	if pid == 0 || !Alive(pid) {
		t.Fatal("the victim has no server, so nothing is proved")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // It was killed; the error says so.
	return pid
}

// OpenDir makes a folder that a server's user can enter, which those of
// t.TempDir are not, and removes it when the test ends.
func OpenDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "servertest-parent-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// WantEmpty fails the test for all that is in the folder.
func WantEmpty(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Errorf("%s is left", filepath.Join(dir, entry.Name()))
	}
}
