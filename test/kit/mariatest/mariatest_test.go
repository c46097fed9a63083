package mariatest_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/servertest"
)

func text(t *testing.T, conn *sql.Conn, query string) string {
	t.Helper()
	var value string
	if err := conn.QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

func TestNewGivesDatabasesOfTheirOwn(t *testing.T) {
	t.Parallel()
	one, other := mariatest.Connect(t, mariatest.New(t), nil), mariatest.Connect(t, mariatest.New(t), nil)
	if text(t, one, "SELECT DATABASE()") == text(t, other, "SELECT DATABASE()") {
		t.Error("two tests share a database")
	}
	// The clock of the sessions and that of the server's own tables differ, as
	// they do out there.
	if zone := text(t, one, "SELECT CONCAT(@@time_zone, ' ', @@system_time_zone)"); !strings.HasPrefix(zone, "+00:00 CE") {
		t.Errorf("the time zones are %s", zone)
	}
}

func TestNewRoleMayDoWhatWasGranted(t *testing.T) {
	t.Parallel()
	url := mariatest.New(t)
	if _, err := mariatest.Connect(t, url, nil).ExecContext(t.Context(), "CREATE TABLE a (id int); CREATE TABLE b (id int)"); err != nil {
		t.Fatal(err)
	}
	role := mariatest.Connect(t, mariatest.NewRole(t, url, "SELECT ON a"), nil)
	if n := text(t, role, "SELECT COUNT(*) FROM a"); n != "0" {
		t.Errorf("%s rows in a new table", n)
	}
	if _, err := role.ExecContext(t.Context(), "SELECT * FROM b"); err == nil {
		t.Error("the role reads what it was not granted")
	}
}

func TestServerTakesSettings(t *testing.T) {
	t.Parallel()
	server := mariatest.Start(t, mariatest.Options{Settings: map[string]string{"max-connections": "17"}})
	if n := text(t, mariatest.Connect(t, server.New(t), nil), "SELECT @@max_connections"); n != "17" {
		t.Errorf("max_connections is %s, want 17", n)
	}
}

func TestServerSaysWhyItDoesNotStart(t *testing.T) {
	t.Parallel()
	parent := servertest.OpenDir(t)
	_, err := mariatest.Open(t.Context(), mariatest.Options{Dir: parent, Settings: map[string]string{"no-such-setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("a wrong setting gave %v, want the words of the server's log", err)
	}
	servertest.WantEmpty(t, parent)
}

func TestBindirIsNotReplacedByAnother(t *testing.T) {
	t.Setenv("MARIATEST_BINDIR", t.TempDir())
	if _, err := mariatest.Open(t.Context(), mariatest.Options{}); err == nil || !strings.Contains(err.Error(), "mariadbd") {
		t.Errorf("an empty MARIATEST_BINDIR gave %v", err)
	}
}

var victims = servertest.Victims{
	Test: "TestVictim", Env: "MARIATEST_VICTIM_DIR", Pid: "data/server.pid",
	Open: func(ctx context.Context, dir string) (servertest.Server, error) {
		return mariatest.Open(ctx, mariatest.Options{Dir: dir})
	},
}

func TestKilledTestsLeaveNoServer(t *testing.T) {
	t.Parallel()
	victims.Check(t)
}

func TestVictim(t *testing.T) { victims.Be(t) }
