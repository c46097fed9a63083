package pgtest_test

import (
	"context"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/pgtest"
)

func TestServerKeepsCommitsAndPortOverEveryEnd(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	port, databaseURL := server.Port(), server.URL("postgres")
	exec(t, connect(t, databaseURL), "CREATE TABLE ends (name text)")
	for name, end := range map[string]func(context.Context) error{
		"smart":     func(ctx context.Context) error { return server.Stop(ctx, pgtest.Smart) },
		"fast":      func(ctx context.Context) error { return server.Stop(ctx, pgtest.Fast) },
		"immediate": func(ctx context.Context) error { return server.Stop(ctx, pgtest.Immediate) },
		"kill":      server.Kill,
	} {
		if err := run(t.Context(), databaseURL, "INSERT INTO ends VALUES ('"+name+"')"); err != nil {
			t.Fatalf("before %s: %v", name, err)
		}
		restart(t, server, name, end)
		if server.Port() != port {
			t.Errorf("after %s the port is %d, want %d", name, server.Port(), port)
		}
	}
	if n := query[int](t, connect(t, databaseURL), "SELECT count(*) FROM ends"); n != 4 {
		t.Errorf("%d of 4 commits survived", n)
	}
}

func restart(t *testing.T, server *pgtest.Server, name string, end func(context.Context) error) {
	t.Helper()
	// Smart waits for clients, so the test's own must not be what it waits for.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if name == "smart" {
		closeOthers(t, server)
	}
	if err := end(ctx); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if _, err := pgx.Connect(ctx, server.URL("postgres")); err == nil {
		t.Fatalf("after %s the server still answers", name)
	}
	if err := server.Start(ctx); err != nil {
		t.Fatalf("start after %s: %v", name, err)
	}
}

func closeOthers(t *testing.T, server *pgtest.Server) {
	t.Helper()
	err := run(t.Context(), server.URL("postgres"),
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
	if err != nil {
		t.Fatal(err)
	}
}

func TestServerTakesSettings(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_connections": "17"}})
	conn := connect(t, server.URL("postgres"))
	if value := query[string](t, conn, "SHOW max_connections"); value != "17" {
		t.Errorf("max_connections is %s, want 17", value)
	}
}

func TestServerSaysWhyItDoesNotStart(t *testing.T) {
	t.Parallel()
	_, err := pgtest.Open(t.Context(), pgtest.Options{Settings: map[string]string{"max_connections": "many"}})
	if err == nil || !strings.Contains(err.Error(), "max_connections") {
		t.Errorf("a wrong setting gave %v, want the words of the server's log", err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*pgtest.Server) error{
		"running": func(*pgtest.Server) error { return nil },
		"killed":  func(s *pgtest.Server) error { return s.Kill(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := openDir(t)
			server, err := pgtest.Open(t.Context(), pgtest.Options{Dir: parent})
			if err != nil {
				t.Fatal(err)
			}
			if err := end(server); err != nil {
				t.Error(err)
			}
			if err := server.Close(); err != nil {
				t.Error(err)
			}
			wantEmpty(t, parent)
		})
	}
}

// openDir makes a folder that the server's user can enter, which those of
// t.TempDir are not.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pgtest-parent-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Errorf("%s is left", filepath.Join(dir, entry.Name()))
	}
}

// TestKilledTestsLeaveNoServer runs this test binary a second time, lets it
// start a cluster and kills it with -9: no server may live on, and the next
// cluster removes the folder of the dead one.
func TestKilledTestsLeaveNoServer(t *testing.T) {
	t.Parallel()
	parent := openDir(t)
	child := startVictim(t, parent)
	if len(postmasters(t, parent)) != 1 {
		t.Fatal("the victim has no server, so nothing is proved")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // It was killed; the error says so.
	waitUntilGone(t, parent)
	makeOld(t, parent)
	server, err := pgtest.Open(t.Context(), pgtest.Options{Dir: parent})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	wantEmpty(t, parent)
}

// victimDir is set in the second run of this test binary.
const victimDir = "PGTEST_VICTIM_DIR"

// TestVictim is the second run's only test: it starts a server, says
// so and waits to be killed.
func TestVictim(t *testing.T) {
	parent := os.Getenv(victimDir)
	if parent == "" {
		return // An ordinary run; TestKilledTestsLeaveNoServer does the work.
	}
	server, err := pgtest.Open(t.Context(), pgtest.Options{Dir: parent})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.WriteString(server.URL("postgres") + "\n")
	select {}
}

// startVictim returns once the victim's server runs.
func startVictim(t *testing.T, parent string) *osexec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := osexec.CommandContext(ctx, os.Args[0], "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), victimDir+"="+parent)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 256)); err != nil {
		t.Fatalf("wait for the victim's server: %v", err)
	}
	return cmd
}

// waitUntilGone waits until the victim's server has removed the file by which
// it says that it runs. Nobody but the kernel told it to stop.
func waitUntilGone(t *testing.T, parent string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for len(postmasters(t, parent)) > 0 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal("the server outlived the tests that started it")
		}
	}
}

func postmasters(t *testing.T, parent string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(parent, "*", "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// makeOld lets what is in dir look older than the minute that sweep spares.
func makeOld(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) == 0 {
		t.Fatal("the killed run left no folder, so nothing is proved")
	}
	old := time.Now().Add(-time.Hour)
	for _, entry := range entries {
		if err := os.Chtimes(filepath.Join(dir, entry.Name()), old, old); err != nil {
			t.Fatal(err)
		}
	}
}
