package liveness

import (
	"testing"

	"github.com/observerd/observerd/internal/lockdb/sqldb/sqltest"
)

func TestStatementsAreAccepted(t *testing.T) {
	t.Parallel()
	sqltest.Golden(t, postgresPresenceSQL, sqlitePresenceSQL, sqltest.Migrated(t))
}
