package pgtest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
)

func TestServerKeepsCommitsAndPortOverEveryEnd(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	port, databaseURL := server.Port(), server.URL("postgres")
	exec(t, connect(t, databaseURL), "CREATE TABLE ends (name text)")
	for name, end := range map[string]func(context.Context) error{
		"fast":      func(ctx context.Context) error { return server.Stop(ctx, pgtest.Fast) },
		"immediate": func(ctx context.Context) error { return server.Stop(ctx, pgtest.Immediate) },
		"kill":      server.Kill,
	} {
		if err := pgtest.Execute(t.Context(), databaseURL, "INSERT INTO ends VALUES ('"+name+"')"); err != nil {
			t.Fatalf("before %s: %v", name, err)
		}
		restart(t, server, name, end)
		if server.Port() != port {
			t.Errorf("after %s the port is %d, want %d", name, server.Port(), port)
		}
	}
	if n := query[int](t, connect(t, databaseURL), "SELECT count(*) FROM ends"); n != 3 {
		t.Errorf("%d of 3 commits survived", n)
	}
}

func restart(t *testing.T, server *pgtest.Server, name string, end func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
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
			parent := servertest.OpenDir(t)
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
			servertest.WantEmpty(t, parent)
		})
	}
}

var victims = servertest.Victims{
	Test: "TestVictim", Env: "PGTEST_VICTIM_DIR", Pid: "data/postmaster.pid",
	Open: func(ctx context.Context, dir string) (servertest.Server, error) {
		return pgtest.Open(ctx, pgtest.Options{Dir: dir})
	},
}

func TestKilledTestsLeaveNoServer(t *testing.T) {
	t.Parallel()
	victims.Check(t)
}

func TestVictim(t *testing.T) { victims.Be(t) }
