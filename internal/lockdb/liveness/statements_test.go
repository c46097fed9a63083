package liveness

import (
	"testing"

	"github.com/observerd/observerd/test/kit/sqltest"
)

func TestStatementsAreAccepted(t *testing.T) {
	t.Parallel()
	sqltest.Golden(t, postgresPresenceSQL, sqlitePresenceSQL, sqltest.Migrated(t))
}
