package eventlog

import (
	"testing"

	"github.com/observerd/observerd/test/kit/sqltest"
)

func TestStatementsAreAccepted(t *testing.T) {
	t.Parallel()
	sqltest.Golden(t, logTexts, logTexts, sqltest.Migrated(t))
}
