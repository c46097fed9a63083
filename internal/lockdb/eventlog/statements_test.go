package eventlog

import (
	"testing"

	"github.com/observerd/observerd/test/kit/sqltest"
)

func TestStatementsAreAccepted(t *testing.T) {
	t.Parallel()
	sqlite := textsOf("sqlite")
	sqlite.Notify = "" // There is nobody to tell.
	sqltest.Golden(t, textsOf("postgres"), sqlite, sqltest.Migrated(t))
}
