package lockdb

import (
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestCleanRemovesLocksInBatches has locks left behind, one more than a batch. What is held
// stays.
func TestCleanRemovesLocksInBatches(t *testing.T) {
	t.Parallel()
	for dialect, url := range map[string]func() string{
		"postgres": func() string { return pgtest.New(t) },
		"sqlite":   func() string { return "sqlite:" + t.TempDir() + "/observerd.db" },
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			db := migrated(t, url())
			if err := db.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			const (
				rows   = `WITH RECURSIVE n(g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM n WHERE g <= 5001) `
				series = `SELECT CAST(g AS TEXT), 'LOCKS', CAST(g AS TEXT), `
				past   = `'2000-01-01 00:00:00.000000'`
			)
			for _, text := range []string{
				`INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness)
				 ` + rows + series + `1, '', '', '', 1000, ` + past + `, CASE WHEN g = 1 THEN 'holds' ELSE 'held' END, 'session' FROM n`,
				`INSERT INTO int_lock (lock_key, region, client_id, created_date) VALUES ('1', 'LOCKS', '1', {utc})`,
				`INSERT INTO obs_hold (lock_key, region, term, group_term, mode, fence, name, node, descriptor, metadata, ttl_ms, acquired_at, touched_at)
				 ` + rows + series + `'', 'shared', 1, '', '', '', '', 1000, ` + past + `, ` + past + ` FROM n WHERE g > 1`,
				`INSERT INTO obs_wait (waiter, lock_key, region, mode, priority, ticket, node, touched_at)
				 ` + rows + `SELECT CAST(g AS TEXT), '1', 'LOCKS', 'shared', 0, g, '', ` + past + ` FROM n WHERE g > 1`,
				`INSERT INTO obs_lock_failure (lock_key, region, predicate, subject, name, failures, first_at, last_at)
				 ` + rows + `SELECT CAST(g AS TEXT), 'LOCKS', 'reading', 'page', '', 1, ` + past + `, CASE WHEN g = 1 THEN {now} ELSE ` + past + ` END FROM n`,
			} {
				if _, err := db.db.Main.ExecContext(t.Context(), db.db.Rendering().SQL(text)); err != nil {
					t.Fatal(err)
				}
			}
			c := &cleaner{node: db, Retention: Retention{
				Events: time.Hour, Polls: time.Hour, Dead: time.Hour, Audit: time.Hour, Nodes: time.Hour, StaleLocks: time.Hour,
			}}
			for _, task := range c.chores() {
				want := map[string]int64{"obs_lock": cleanBatch, "obs_hold": cleanBatch, "obs_wait": cleanBatch, "obs_lock_failure": cleanBatch}[task.table]
				if n, err := db.db.Exec(t.Context(), "clean "+task.table, task.text, task.age.Seconds()); n != want || err != nil {
					t.Errorf("one deletion from %s removed %d rows, %v; want %d", task.table, n, err, want)
				}
			}
			if n, err := c.run(t.Context()); n != 4 || err != nil {
				t.Errorf("then %d rows were removed, %v; want the last of each table", n, err)
			}
			for table, want := range map[string]int{"int_lock": 1, "obs_lock": 1, "obs_hold": 0, "obs_wait": 0, "obs_lock_failure": 1} {
				var n int
				if err := db.db.Main.QueryRowContext(t.Context(), db.db.Rendering().SQL(`SELECT count(*) FROM `+table)).Scan(&n); n != want || err != nil {
					t.Errorf("%d rows are left in %s, %v; want %d", n, table, err, want)
				}
			}
		})
	}
}
