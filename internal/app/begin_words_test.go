package app

import (
	"fmt"
	"testing"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// TestPageNamesNoFile words errors as they come from the database.
func TestPageNamesNoFile(t *testing.T) {
	t.Parallel()
	missing := fmt.Errorf("%w: the column CREATED_DATE is missing", sqldb.ErrMixedTable)
	for err, want := range map[error]string{
		fmt.Errorf("%w: /var/lib/observerd/notes.db is left as it is", sqldb.ErrNoDatabase): sqldb.ErrNoDatabase.Error(),
		missing: missing.Error(),
	} {
		if got := plainly(err); got != want {
			t.Errorf("the page says %q, want %q", got, want)
		}
	}
}
