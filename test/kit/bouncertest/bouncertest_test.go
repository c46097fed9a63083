package bouncertest_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/bouncertest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(pgtest.Wrap(m)) }

// A client keeps a session of the server to its end in one mode, and for a transaction
// in the other.
func TestModes(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	pooled := func(mode bouncertest.Mode) string {
		return bouncertest.Start(t, pgtest.NewRole(t, database), bouncertest.Options{Mode: mode}).URL()
	}
	for name, tc := range map[string]struct {
		url    string
		shared bool
	}{
		"session":     {pooled(bouncertest.Session), false},
		"transaction": {pooled(bouncertest.Transaction), true},
	} {
		one, other := backend(t, connect(t, tc.url)), backend(t, connect(t, tc.url))
		if (one == other) != tc.shared {
			t.Errorf("%s: two clients have the backends %d and %d", name, one, other)
		}
	}
	client := connect(t, bouncertest.StandIn(t, database))
	if one, other := backend(t, client), backend(t, client); one == other {
		t.Errorf("a stand-in: both transactions have the backend %d", one)
	}
}

// The stand-in keeps prepared statements of one name apart, and the sessions of the
// server know them by others.
func TestStandInKeepsStatementsApart(t *testing.T) {
	t.Parallel()
	url := bouncertest.StandIn(t, pgtest.New(t))
	clients := []*pgx.Conn{connect(t, url), connect(t, url)}
	for n, text := range []string{"SELECT 1", "SELECT 2"} {
		if _, err := clients[n].Prepare(t.Context(), "same", text); err != nil {
			t.Fatal(err)
		}
	}
	for n, client := range clients {
		var got int
		if err := client.QueryRow(t.Context(), "same").Scan(&got); err != nil || got != n+1 {
			t.Errorf("client %d: %d, %v", n, got, err)
		}
	}
	var names string
	err := clients[0].QueryRow(t.Context(), "SELECT string_agg(name, ' ') FROM pg_prepared_statements", pgx.QueryExecModeExec).Scan(&names)
	if err != nil || names == "" || strings.Contains(" "+names+" ", " same ") {
		t.Errorf("the server has the statements %s, %v", names, err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func backend(t *testing.T, conn *pgx.Conn) (pid int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	return pid
}
