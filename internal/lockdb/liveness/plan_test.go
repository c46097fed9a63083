package liveness

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/pgtest"
)

const (
	manyLeases = `INSERT INTO int_lock (lock_key, region, client_id, created_date) SELECT g, CASE WHEN g < 4 THEN 'DEFAULT' ELSE 'LOCKS' END, g, now() FROM generate_series(1, 20000) g`
	manyLocks  = `
		INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness)
		SELECT lock_key, region, client_id, 1, '', '', '', 1000, now(), 'boot-' || g % 50, 'session' FROM int_lock, LATERAL (SELECT lock_key::int AS g) n`
)

// TestLookReadsNoLocksOfOthers reads the plans of a look, which every node makes four times
// a second: general locks must not cost it anything, be it prepared before or after they came.
func TestLookReadsNoLocksOfOthers(t *testing.T) {
	t.Parallel()
	db := migrated(t, pgtest.New(t))
	p := newSessionPresence(db, "boot")
	if err := p.appear(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.vanish(context.Background()) })
	execute := func(text string) {
		if _, err := p.conn.Exec(t.Context(), db.Rendering().SQL(text)); err != nil {
			t.Fatal(err)
		}
	}
	for i, text := range []string{`SELECT`, manyLeases, manyLocks, `ANALYZE int_lock, obs_lock`} {
		execute(text)
		execute(fmt.Sprintf(`PREPARE look%d AS %s`, i, p.sql.SQL().Look))
		for n := range i + 1 {
			rows, _ := p.conn.Query(t.Context(), fmt.Sprintf(`EXPLAIN EXECUTE look%d (ARRAY['', 'DEFAULT'])`, n)) // The error comes with the rows.
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			plan := strings.Join(lines, "\n")
			if err != nil || !strings.Contains(plan, "Index Cond: ((lock_key = o.lock_key)") || !strings.Contains(plan, "Index Cond: ((region)::text = ANY") {
				t.Errorf("look %d is planned after %q as\n%s, %v", n, text, plan, err)
			}
		}
	}
	for range 2 {
		if s, err := p.look(t.Context(), []string{"DEFAULT"}); err != nil || len(s.leases) != 3 {
			t.Fatalf("%d leases, %v", len(s.leases), err)
		}
	}
	var prepared int
	err := p.conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_prepared_statements WHERE generic_plans = 2 AND NOT from_sql`).Scan(&prepared)
	if err != nil || prepared != 1 {
		t.Errorf("%d statements have kept a plan, %v", prepared, err)
	}
}

// On SQLite the plan depends on the indexes alone: nobody has counted the rows.
func TestLookReadsNoLocksOfOthersOnSQLite(t *testing.T) {
	t.Parallel()
	db := migrated(t, "sqlite:"+t.TempDir()+"/observerd.db")
	list := db.List([]string{"", "DEFAULT"})
	rows, err := db.Main.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+newPresenceSQL(db).SQL().Look, list)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(plan, "\n")
	if !strings.Contains(text, "SEARCH o USING INDEX obs_lock_") || !strings.Contains(text, "SEARCH l USING ") {
		t.Errorf("the look does not search:\n%s", text)
	}
	for _, step := range plan {
		if words := strings.Fields(step); words[0] == "SCAN" && slices.Contains([]string{"l", "o"}, words[1]) {
			t.Errorf("the look is planned as\n%s", text)
		}
	}
}

func migrated(t *testing.T, url string) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(sqldb.Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}
