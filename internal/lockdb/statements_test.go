package lockdb

import (
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/internal/lockdb/sqldb/sqltest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/springtest"
	"github.com/observerd/observerd/test/kit/testbed"
)

func TestStatementsAreAccepted(t *testing.T) {
	t.Parallel()
	on := sqltest.Databases{SQLite: "sqlite:" + filepath.Join(t.TempDir(), "observerd.db"), Postgres: pgtest.New(t), ExpiredAfter: pgtest.New(t)}
	if err := testbed.Execute(t.Context(), on.ExpiredAfter, springtest.Spring7.Table()); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{on.SQLite, on.Postgres, on.ExpiredAfter} {
		migrated(t, url)
	}
	sqltest.Golden(t, postgresLeaseSQL, sqliteLeaseSQL, on)
}
