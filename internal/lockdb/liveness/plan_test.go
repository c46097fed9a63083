package liveness

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestLookReadsNoLocksOfOthers reads the plans of a look, which every node makes four times
// a second: general locks must not cost it anything.
func TestLookReadsNoLocksOfOthers(t *testing.T) {
	t.Parallel()
	db, err := sqldb.Open(sqldb.Options{URL: pgtest.New(t), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`INSERT INTO int_lock (lock_key, region, client_id, created_date) SELECT g, CASE WHEN g < 4 THEN 'DEFAULT' ELSE 'LOCKS' END, g, now() FROM generate_series(1, 20000) g`,
		`INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, boot_term, liveness)
		 SELECT lock_key, region, client_id, 1, '', '', '', 1000, now(), 'boot-' || g % 50, client_id, 'session' FROM int_lock, LATERAL (SELECT lock_key::int AS g) n`,
		`INSERT INTO obs_hold SELECT g, 'LOCKS', g, g, 'shared', 1, '', '', '', '', 1000, now(), now(), 'boot-' || g % 50, 'session' FROM generate_series(1, 20000) g`,
		`ANALYZE int_lock, obs_lock, obs_hold`,
	} {
		if _, err := db.Main.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	boots, _ := db.List([]string{"boot-7", "boot-8"})
	regions, _ := db.List([]string{"DEFAULT"})
	for name, q := range map[string]struct {
		text string
		args []any
	}{
		"the look":           {snapshotText(db, []string{"DEFAULT"}), nil},
		"what the dead hold": {db.SQL(strings.Replace(abandonedSQL, "{touched}", touchedPostgres, 1)), []any{boots, regions, mostAbandoned}},
	} {
		plan := explain(t, db, q.text, q.args)
		for _, table := range []string{"int_lock", "obs_lock", "obs_hold"} {
			if strings.Contains(plan, "Seq Scan on "+table) {
				t.Errorf("%s is planned as\n%s", name, plan)
			}
		}
	}
}

func explain(t *testing.T, db *sqldb.DB, text string, args []any) string {
	t.Helper()
	rows, err := db.Main.QueryContext(t.Context(), `EXPLAIN `+text, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
