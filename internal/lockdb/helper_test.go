package lockdb_test

import (
	"context"
	"database/sql"
	"log/slog"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/locks/database"
	"github.com/observerd/observerd/test/kit/lockdbtest"
	"github.com/observerd/observerd/test/kit/springtest"
)

// raw opens the database beside observerd, as a person with psql would.
func raw(t *testing.T, url string) (*sql.DB, string) {
	t.Helper()
	driver, dsn, dialect := "pgx", url, "postgres"
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, dsn, dialect = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)", "sqlite"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db, dialect
}

// exec runs the statement of the database's dialect.
func exec(ctx context.Context, t *testing.T, url string, statements map[string]string, args ...any) {
	t.Helper()
	db, dialect := raw(t, url)
	defer db.Close()
	if _, err := db.ExecContext(ctx, statements[dialect], args...); err != nil {
		t.Fatal(err)
	}
}

// count returns the one number of a query.
func count(t *testing.T, url, query string) int {
	t.Helper()
	db, _ := raw(t, url)
	defer db.Close() // tests ask again and again
	var n int
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// hasExpiry reports whether INT_LOCK is that of Spring Integration 7.
func hasExpiry(ctx context.Context, t *testing.T, db *sql.DB) bool {
	t.Helper()
	var has bool
	err := db.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM information_schema.columns WHERE table_name = 'int_lock' AND column_name = 'expired_after')`).Scan(&has)
	if err != nil {
		t.Error(err)
	}
	return has
}

// newPostgres makes a migrated database.
func newPostgres(t *testing.T) string { return lockdbtest.Postgres(t, "") }

// withExpiry makes one whose INT_LOCK Spring Integration 7 has created.
func withExpiry(t *testing.T) string { return lockdbtest.Postgres(t, springtest.Spring7.Table()) }

// general returns the provider of general locks on a database that is open.
func general(db *lockdb.DB) *database.Provider {
	return database.On(db, slog.New(slog.DiscardHandler))
}
