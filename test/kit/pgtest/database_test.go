package pgtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/test/kit/pgtest"
)

func connect(t *testing.T, databaseURL string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatalf("connect to %s: %v", databaseURL, err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func query[T any](t *testing.T, conn *pgx.Conn, statement string, args ...any) T {
	t.Helper()
	var value T
	if err := conn.QueryRow(t.Context(), statement, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

func TestNewGivesEachTestItsOwnDatabase(t *testing.T) {
	t.Parallel()
	first, second := connect(t, pgtest.New(t)), connect(t, pgtest.New(t))
	exec(t, first, "CREATE TABLE orders (id int)")
	if table := query[*string](t, second, "SELECT to_regclass('orders')::text"); table != nil {
		t.Errorf("the second database has the first one's table %s", *table)
	}
}

func TestNewGivesADurableServer(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.New(t))
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		if value := query[string](t, conn, "SELECT current_setting($1)", setting); value != "on" {
			t.Errorf("%s is %s, so a commit would be no promise", setting, value)
		}
	}
}

func TestDatabaseIsDroppedWithItsConnections(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("a test that leaves a connection open", func(t *testing.T) {
		databaseURL := pgtest.New(t)
		name = databaseName(t, databaseURL)
		conn, err := pgx.Connect(t.Context(), databaseURL)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, conn, "CREATE TABLE orders (id int)")
	})
	if databaseExists(t, name) {
		t.Errorf("the database %s outlived its test", name)
	}
}

func TestNewFromPreparesOnceForAll(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	var preparations atomic.Int32
	prepare := func(ctx context.Context, databaseURL string) error {
		preparations.Add(1)
		return pgtest.Execute(ctx, databaseURL, "CREATE TABLE prepared (n int); INSERT INTO prepared VALUES (42)")
	}
	t.Run("side by side", func(t *testing.T) {
		for i := range 4 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				conn := connect(t, pgtest.NewFrom(t, name, prepare))
				if n := query[int](t, conn, "SELECT n FROM prepared"); n != 42 {
					t.Errorf("the copy holds %d, want 42", n)
				}
				exec(t, conn, "UPDATE prepared SET n = 0")
			})
		}
	})
	if n := preparations.Load(); n != 1 {
		t.Errorf("the template was prepared %d times", n)
	}
}

func TestNewFromBeginsAHalfMadeTemplateAgain(t *testing.T) {
	t.Parallel()
	name := uniqueName(t)
	broken := errors.New("broken")
	t.Run("fails", func(t *testing.T) {
		probe := &failing{TB: t}
		probe.run(func() {
			pgtest.NewFrom(probe, name, func(ctx context.Context, databaseURL string) error {
				return errors.Join(pgtest.Execute(ctx, databaseURL, "CREATE TABLE half (n int)"), broken)
			})
		})
		if !strings.Contains(probe.message, "broken") {
			t.Errorf("the test failed with %q, want the error of prepare", probe.message)
		}
	})
	conn := connect(t, pgtest.NewFrom(t, name, func(ctx context.Context, databaseURL string) error {
		return pgtest.Execute(ctx, databaseURL, "CREATE TABLE whole (n int)")
	}))
	if table := query[*string](t, conn, "SELECT to_regclass('half')::text"); table != nil {
		t.Error("the copy holds what the failed preparation left")
	}
}

func TestNewRoleHasItsGrantsAndNoMore(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.New(t)
	exec(t, connect(t, databaseURL), "CREATE TABLE orders (id int); CREATE TABLE secrets (id int)")
	conn := connect(t, pgtest.NewRole(t, databaseURL, "SELECT ON orders"))
	if n := query[int](t, conn, "SELECT count(*) FROM orders"); n != 0 {
		t.Errorf("the empty table has %d rows", n)
	}
	_, err := conn.Exec(t.Context(), "SELECT FROM secrets")
	if denied := (*pgconn.PgError)(nil); !errors.As(err, &denied) || denied.Code != "42501" {
		t.Errorf("reading without a grant gave %v, want insufficient_privilege", err)
	}
}

func TestNewRoleNeedsItsPassword(t *testing.T) {
	t.Parallel()
	parsed, err := url.Parse(pgtest.NewRole(t, pgtest.New(t)))
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.UserPassword(parsed.User.Username(), "wrong")
	_, err = pgx.Connect(t.Context(), parsed.String())
	if denied := (*pgconn.PgError)(nil); !errors.As(err, &denied) || denied.Code != "28P01" {
		t.Errorf("a wrong password gave %v, want invalid_password", err)
	}
}

// failing stands in for a test that is expected to fail.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	panic(f)
}

// run calls do and survives its Fatalf.
func (f *failing) run(do func()) {
	defer func() {
		if reason := recover(); reason != nil && reason != any(f) {
			panic(reason)
		}
	}()
	do()
}

func uniqueName(t *testing.T) string {
	t.Helper()
	// The database of this test has a name that nobody else has.
	return databaseName(t, pgtest.New(t))
}

func databaseName(t *testing.T, databaseURL string) string {
	t.Helper()
	parsed, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(parsed.Path, "/")
}

func databaseExists(t *testing.T, name string) bool {
	t.Helper()
	conn := connect(t, pgtest.New(t))
	return query[bool](t, conn, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name)
}
