package sqldb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// TestObstacle has what stands in the way of a server that answers, which its logs must not call
// an outage, and what is no such thing.
func TestObstacle(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"42501": "the role lacks a right", "55P03": "another session has locked", "57P01": "", "28P01": "", "23505": ""} {
		err := fmt.Errorf("take the turn: %w", &pgconn.PgError{Code: code, Message: "of the server"})
		if got := sqldb.Obstacle(err); !strings.HasPrefix(got, want) || want == "" && got != "" || strings.Contains(got, "of the server") {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
