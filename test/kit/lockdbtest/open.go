package lockdbtest

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/internal/lockdb"
)

// Open returns a coordination database on SQLite that is up to date. It is made where the
// test is, so that it may be in a bubble of package synctest.
func Open(t testing.TB, log *slog.Logger) *lockdb.DB {
	t.Helper()
	db, err := lockdb.Open(lockdb.Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "observerd.db"), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}
