package lockdb

import (
	"testing"

	"github.com/observerd/observerd/test/kit/sqltest"
)

func TestStatementsAreAccepted(t *testing.T) {
	t.Parallel()
	sqltest.Golden(t, partTexts("postgres"), partTexts("sqlite"), sqltest.Migrated(t))
}
