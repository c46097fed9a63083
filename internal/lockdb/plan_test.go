package lockdb

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestObservedIsLookedUpByIndex reads the plan of the lookup that every chunk
// makes. It is in the package itself because the statement is not exported.
func TestObservedIsLookedUpByIndex(t *testing.T) {
	t.Parallel()
	db := filled(t,
		`INSERT INTO obs_observed (stream_id, key, row_hash, version, row_number)
		 SELECT 1, 'ORD-' || g, '\x00', 1, g FROM generate_series(1, 50000) g`,
		`ANALYZE obs_observed`,
	)
	keys := make([]string, 5000)
	for i := range keys {
		keys[i] = fmt.Sprint("ORD-", i)
	}
	if p := explain(t, db, postgresStoreSQL.Observed, int64(1), keys); !strings.Contains(p, "Index Scan using obs_observed_pkey") || strings.Contains(p, "Seq Scan on obs_observed") {
		t.Errorf("the lookup is planned as\n%s", p)
	}
	if p := explain(t, db, postgresStoreSQL.Between, int64(1), "ORD-2000", "ORD-1000", 10_000); !strings.Contains(p, "Index Scan using obs_observed_pkey") || strings.Contains(p, "Sort") {
		t.Errorf("the range is planned as\n%s", p)
	}
}

// TestTurnsAreReadByIndex reads the plan of what each turn asks of its observers:
// the others of the cluster must not cost it anything.
func TestTurnsAreReadByIndex(t *testing.T) {
	t.Parallel()
	db := filled(t,
		`INSERT INTO obs_cursor (stream) SELECT 'orders-' || g FROM generate_series(1, 2000) g`,
		`ANALYZE obs_cursor`,
	)
	ids := []string{"orders-7", "orders-70", "orders-700"}
	if p := explain(t, db, turnTexts.Streams, "order", ids); strings.Contains(p, "Seq Scan on obs_cursor") || !strings.Contains(p, "obs_cursor_stream_key") {
		t.Errorf("the turns of observers are read as\n%s", p)
	}
}

// TestLocksAreReadByKey reads the plan of what the status shows.
func TestLocksAreReadByKey(t *testing.T) {
	t.Parallel()
	db := filled(t,
		`INSERT INTO int_lock (lock_key, region, client_id, created_date) SELECT g, 'LOCKS', g, now() FROM generate_series(1, 20000) g`,
		`INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness)
		 SELECT g, 'LOCKS', g, g, g, 'a', 'lock:exclusive:page:writing:' || g, 1000, now(), '', '' FROM generate_series(1, 20000) g`,
		`ANALYZE int_lock, obs_lock`,
	)
	regions := db.db.List([]string{"", "DEFAULT"})
	if p := explain(t, db, locksSQL, regions, 200, mostCounted); strings.Count(p, "Seq Scan on") > 1 { // the one that counts
		t.Errorf("the locks of the status are read by\n%s", p)
	}
}

// TestLastPollsAreReadByIndex reads the plan of what a page asks each second.
func TestLastPollsAreReadByIndex(t *testing.T) {
	t.Parallel()
	db := filled(t,
		`INSERT INTO obs_poll (type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count)
		 SELECT 'order', 'orders', 'a', now(), now(), now() - g * interval '1 second', 'ok', '', 0, 0, 0 FROM generate_series(1, 50000) g`,
		`ANALYZE obs_poll`,
	)
	for _, since := range []time.Duration{time.Minute, 100 * time.Hour} {
		if p := explain(t, db, reportTexts.Past, time.Now().Add(-since), 10_000); strings.Contains(p, "Sort") || !strings.Contains(p, "obs_poll_finished") {
			t.Errorf("the last polls are read as\n%s", p)
		}
	}
}

// TestPollsAreReadByObserver reads the plans of the last polls of an observer, one that is polled
// rarely or often, and of the deletion of old polls.
func TestPollsAreReadByObserver(t *testing.T) {
	t.Parallel()
	for dialect, tc := range map[string]struct {
		url, fill, explain, want string
	}{
		"postgres": {
			pgtest.New(t), `INSERT INTO obs_poll (type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count)
			 SELECT 'order', CASE WHEN g % 10000 = 1 THEN 'rare' WHEN g % 2 = 0 THEN 'often' ELSE 'orders-' || g % 99 END, 'a', now(), now(), now() + g * interval '1 second', 'ok', '', 0, 0, 0
			   FROM generate_series(1, 50000) g; ANALYZE obs_poll`,
			`EXPLAIN `, "obs_poll_pkey",
		},
		"sqlite": {
			"sqlite:" + filepath.Join(t.TempDir(), "observerd.db"), `WITH RECURSIVE s (g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM s WHERE g < 2000)
			 INSERT INTO obs_poll (type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count)
			 SELECT 'order', CASE WHEN g % 1000 = 1 THEN 'rare' ELSE 'often' END, 'a', '', '', '', 'ok', '', 0, 0, 0 FROM s`,
			`EXPLAIN QUERY PLAN `, "USING INDEX obs_poll_stream (stream=?)",
		},
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			db := migrated(t, tc.url)
			if _, err := db.db.Main.ExecContext(t.Context(), db.db.Rendering().SQL(tc.fill)); err != nil {
				t.Fatal(err)
			}
			for _, stream := range []string{"rare", "often"} {
				if p := planOf(t, db, tc.explain+turnTexts.PollsOf, 60, stream); !strings.Contains(p, tc.want) || stream == "often" && (strings.Contains(p, "Sort") || strings.Contains(p, "TEMP B-TREE")) {
					t.Errorf("the polls of an observer are read as\n%s", p)
				}
			}
			if p := planOf(t, db, tc.explain+janitorTexts.Polls, 3600); !strings.Contains(p, "obs_poll_finished") || strings.Contains(p, "Seq Scan") || strings.Contains(p, "SCAN obs_poll") {
				t.Errorf("old polls are deleted as\n%s", p)
			}
		})
	}
}

// TestRecordsAreFoundByNumber reads the plans of what a step of `dead retry` finds and
// removes, from a stream with many records.
func TestRecordsAreFoundByNumber(t *testing.T) {
	t.Parallel()
	for dialect, tc := range map[string]struct {
		url, fill, explain, want string
	}{
		"postgres": {
			pgtest.New(t), `INSERT INTO obs_dead (stream, key, digest, reason, raw, first_at, last_at)
			 SELECT 'orders', g, CAST(CAST(g AS TEXT) AS bytea), '', '', now(), now() FROM generate_series(1, 20000) g; ANALYZE obs_dead`,
			`EXPLAIN `, "using obs_dead_pkey",
		},
		"sqlite": {
			"sqlite:" + filepath.Join(t.TempDir(), "observerd.db"), `WITH RECURSIVE s (g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM s WHERE g < 2000)
			 INSERT INTO obs_dead (stream, key, digest, reason, raw, first_at, last_at)
			 SELECT 'orders', g, CAST(g AS BLOB), '', '', '', '' FROM s`,
			`EXPLAIN QUERY PLAN `, "SEARCH obs_dead USING INTEGER PRIMARY KEY (rowid=?)",
		},
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			db := migrated(t, tc.url)
			if _, err := db.db.Main.ExecContext(t.Context(), db.db.Rendering().SQL(tc.fill)); err != nil {
				t.Fatal(err)
			}
			list := db.db.List([]string{"7", "70", "700"})
			if p := planOf(t, db, tc.explain+deadTexts.DeleteDead, "orders", list); !strings.Contains(p, tc.want) {
				t.Errorf("records are removed as\n%s", p)
			}
			if dialect == "sqlite" { // It cannot know that a filter is off, and reads all.
				return
			}
			if p := planOf(t, db, tc.explain+deadTexts.Dead, false, list, true, []string{}, "", 0.0, true, 100); !strings.Contains(p, tc.want) {
				t.Errorf("records are found as\n%s", p)
			}
		})
	}
}

// filled opens a database that was migrated and then filled by these statements.
func filled(t *testing.T, statements ...string) *DB {
	t.Helper()
	db := migrated(t, pgtest.New(t))
	for _, text := range statements {
		if _, err := db.db.Main.ExecContext(t.Context(), db.db.Rendering().SQL(text)); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func migrated(t *testing.T, url string) *DB {
	t.Helper()
	db, err := Open(Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// explain returns the plan of a statement.
func explain(t *testing.T, db *DB, text string, args ...any) string {
	t.Helper()
	return planOf(t, db, `EXPLAIN `+text, args...)
}

// planOf returns what a statement that explains another says: SQLite says it in the last
// of four columns.
func planOf(t *testing.T, db *DB, text string, args ...any) string {
	t.Helper()
	var plan strings.Builder
	err := db.db.Query(t.Context(), "explain", db.db.Rendering().SQL(text), func(scan func(...any) error) error {
		var line string
		into := []any{&line}
		if strings.HasPrefix(text, "EXPLAIN QUERY PLAN") {
			into = []any{new(int), new(int), new(int), &line}
		}
		err := scan(into...)
		plan.WriteString(line + "\n")
		return err
	}, args...)
	if err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
