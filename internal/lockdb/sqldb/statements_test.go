package sqldb_test

import (
	"testing"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/sqltest"
)

func TestStatementsAreAccepted(t *testing.T) {
	t.Parallel()
	sqltest.Golden(t, sqldb.AllTexts("postgres"), sqldb.AllTexts("sqlite"), sqltest.Migrated(t))
}
