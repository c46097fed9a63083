package examine

import (
	"testing"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/sqltest"
)

func TestGoldenSQL(t *testing.T) {
	t.Parallel()
	sqltest.Golden(t, func(db *sqldb.DB) []any { return []any{newExamineSQL(db).SQL()} })
}
