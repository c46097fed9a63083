package lockdb

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/pgtest"
)

// TestObservedIsLookedUpByIndex reads the plan of the lookup that every chunk
// makes. It is in the package itself because the statement is not exported.
func TestObservedIsLookedUpByIndex(t *testing.T) {
	t.Parallel()
	db, err := Open(Options{URL: pgtest.New(t), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`INSERT INTO obs_observed (stream_id, key, row_hash, version, row_number)
		 SELECT 1, 'ORD-' || g, '\x00', 1, g FROM generate_series(1, 50000) g`,
		`ANALYZE obs_observed`,
	} {
		if _, err := db.main.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	keys := make([]string, 5000)
	for i := range keys {
		keys[i] = fmt.Sprint("ORD-", i)
	}
	var plan strings.Builder
	err = db.query(t.Context(), "explain", `EXPLAIN `+lookUpPostgresSQL, func(scan func(...any) error) error {
		var line string
		err := scan(&line)
		plan.WriteString(line + "\n")
		return err
	}, int64(1), keys)
	if err != nil {
		t.Fatal(err)
	}
	if p := plan.String(); !strings.Contains(p, "Index Scan using obs_observed_pkey") || strings.Contains(p, "Seq Scan") {
		t.Errorf("the lookup is planned as\n%s", p)
	}
}
