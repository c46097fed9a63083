package examine

import (
	"testing"

	"github.com/observerd/observerd/test/kit/sqltest"
)

func TestStatementsAreAccepted(t *testing.T) {
	t.Parallel()
	sqltest.Golden(t, postgresExamineSQL, sqliteExamineSQL, sqltest.Migrated(t))
}
