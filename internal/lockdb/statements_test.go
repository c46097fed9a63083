package lockdb

import (
	"testing"

	"github.com/observerd/observerd/test/kit/sqltest"
)

func TestStatementsAreAccepted(t *testing.T) {
	t.Parallel()
	type statements struct {
		Leases    leaseSQL
		Parts     partSQL
		Unblocked string
	}
	sqltest.Golden(t, statements{postgresLeaseSQL, partTexts("postgres"), endStalledSQL}, statements{sqliteLeaseSQL, partTexts("sqlite"), ""}, sqltest.Migrated(t))
}
