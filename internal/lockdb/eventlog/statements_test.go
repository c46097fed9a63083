package eventlog

import (
	"testing"

	"github.com/observerd/observerd/test/kit/sqltest"
)

func TestStatementsAreAccepted(t *testing.T) {
	t.Parallel()
	sqlite := logTexts
	sqlite.Notify = "" // There is nobody to tell.
	sqltest.Golden(t, logTexts, sqlite, sqltest.Migrated(t))
}
