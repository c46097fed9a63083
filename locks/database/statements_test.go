package database

import (
	"testing"

	"github.com/observerd/observerd/test/kit/lockdbtest"
	"github.com/observerd/observerd/test/kit/springtest"
	"github.com/observerd/observerd/test/kit/sqltest"
)

func TestStatementsAreAccepted(t *testing.T) {
	t.Parallel()
	sqltest.Golden(t, postgresStatements, sqliteStatements, sqltest.Databases{
		SQLite: lockdbtest.SQLite(t), Postgres: lockdbtest.Postgres(t, ""), ExpiredAfter: lockdbtest.Postgres(t, springtest.Spring7.Table()),
	})
}
