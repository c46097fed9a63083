package liveness

import (
	"context"
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
// a second: general locks must not cost it anything.
func TestLookReadsNoLocksOfOthers(t *testing.T) {
	t.Parallel()
	db := migrated(t, pgtest.New(t))
	for _, text := range []string{
		manyLeases,
		manyLocks,
		`ANALYZE int_lock, obs_lock`,
	} {
		if _, err := db.Main.ExecContext(t.Context(), db.Rendering().SQL(text)); err != nil {
			t.Fatal(err)
		}
	}
	plan := explain(t, db, newPresenceSQL(db).SQL().Look, []string{"", "DEFAULT"})
	for _, table := range []string{"int_lock", "obs_lock"} {
		if strings.Contains(plan, "Seq Scan on "+table) {
			t.Errorf("the look is planned as\n%s", plan)
		}
	}
}

// TestLookKeepsThePlanForManyLocks prepares the look while there are none.
func TestLookKeepsThePlanForManyLocks(t *testing.T) {
	t.Parallel()
	db := migrated(t, pgtest.New(t))
	p := newSessionPresence(db, "boot")
	if err := p.appear(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.vanish(context.Background()) })
	for _, text := range []string{
		`PREPARE look AS ` + p.sql.SQL().Look,
		`EXPLAIN EXECUTE look (ARRAY['DEFAULT'])`,
		manyLeases,
		manyLocks,
	} {
		if _, err := p.conn.Exec(t.Context(), db.Rendering().SQL(text)); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := p.conn.Query(t.Context(), `EXPLAIN EXECUTE look (ARRAY['DEFAULT'])`)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if text := strings.Join(plan, "\n"); err != nil || strings.Contains(text, "Seq Scan on int_lock") || strings.Contains(text, "Seq Scan on obs_lock") {
		t.Errorf("the look is planned as\n%s, %v", text, err)
	}
	for range 2 {
		if _, err := p.look(t.Context(), []string{"DEFAULT"}); err != nil {
			t.Fatal(err)
		}
	}
	var prepared int
	err = p.conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_prepared_statements WHERE generic_plans = 2 AND NOT from_sql`).Scan(&prepared)
	if err != nil || prepared != 1 {
		t.Errorf("%d statements have kept a plan, %v", prepared, err)
	}
}

// On SQLite the plan depends on the indexes alone: nobody has counted the rows.
func TestLookReadsNoLocksOfOthersOnSQLite(t *testing.T) {
	t.Parallel()
	db := migrated(t, "sqlite:"+t.TempDir()+"/observerd.db")
	list, err := db.List([]string{"", "DEFAULT"})
	if err != nil {
		t.Fatal(err)
	}
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

func explain(t *testing.T, db *sqldb.DB, text string, args ...any) string {
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
