package eventlog

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestEndsAreComparedOnceAMinute has the log examined without any doubt.
func TestEndsAreComparedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e ends
		if e.due() {
			t.Error("due while nothing is known")
		}
		e.note("orders", 1, uuid.New(), time.Now())
		time.Sleep(examineEvery - time.Second)
		if e.due() {
			t.Error("due within a minute")
		}
		time.Sleep(time.Second)
		if !e.due() || e.due() {
			t.Error("not due once after a minute")
		}
		e.doubt()
		if !e.due() {
			t.Error("not due in doubt")
		}
	})
}

// TestAcknowledgedEventsAreReadByIndex reads the plan of an acknowledgement: the rest
// of the log must not cost it anything.
func TestAcknowledgedEventsAreReadByIndex(t *testing.T) {
	t.Parallel()
	db := migrated(t, pgtest.New(t))
	for _, text := range []string{
		`INSERT INTO obs_event (stream, seq, event_id, type, subject, version, change, time, data)
		 SELECT s, g, gen_random_uuid(), 't', 's', 1, 'new', now(), json_build_object('note', repeat('x', 200))
		   FROM unnest(ARRAY['bills', 'items', 'orders', 'stock']) s, generate_series(1, 20000) g`,
		`INSERT INTO obs_sink_offset (sink, stream, last_seq, epoch, updated_at) VALUES ('other', '', 0, 1, now())`,
		`ANALYZE obs_event, obs_sink_offset`, // Which knows nothing of the sink.
	} {
		if _, err := db.Main.ExecContext(t.Context(), db.Rendering().SQL(text)); err != nil {
			t.Fatal(err)
		}
	}
	lists := [][]string{{"orders", "stock", "bills", "items"}, {"14500", "0", "500", "2000"}, {"15000", "1", "750", "2250"}, {"ids", "ids", "ids", "ids"}, {"15000", "1", "750", "2250"}, {"id", "id", "id", "id"}, {"digest", "digest", "digest", "digest"}, {"", "server", "", "server"}}
	args := func(db *sqldb.DB, first []any, columns [][]string) []any {
		return append(first, (&Log{db: db}).lists(columns)...)
	}
	for what, plan := range map[string]string{
		"an acknowledgement": explain(t, db, "EXPLAIN "+textsOf("postgres").Move, args(db, []any{"file", int64(1)}, lists)...),
		"a read":             explain(t, db, "EXPLAIN "+textsOf("postgres").Read, args(db, nil, lists[:3])...),
	} {
		if strings.Contains(plan, "Seq Scan on obs_event") || strings.Contains(plan, "Join Filter") || !regexp.MustCompile(`Index Cond: .*seq >`).MatchString(plan) {
			t.Errorf("PostgreSQL plans %s as\n%s", what, plan)
		}
	}

	db = migrated(t, "sqlite:"+filepath.Join(t.TempDir(), "c.db"))
	for what, plan := range map[string]string{
		"an acknowledgement": explain(t, db, "EXPLAIN QUERY PLAN "+logTexts.Move, args(db, []any{"file", int64(1)}, lists)...),
		"a read":             explain(t, db, "EXPLAIN QUERY PLAN "+logTexts.Read, args(db, nil, lists[:3])...),
	} {
		each, event := strings.Index(plan, "json_each"), strings.Index(plan, "SEARCH e USING PRIMARY KEY (stream=? AND seq>? AND seq<?)")
		if event < 0 || each < 0 || each > event {
			t.Errorf("SQLite plans %s as\n%s", what, plan)
		}
	}
}

// TestLatestReadsByIndex reads the plan of the last events of a stream: no other event is looked
// at, and none is sorted.
func TestLatestReadsByIndex(t *testing.T) {
	t.Parallel()
	for backend, url := range map[string]string{"postgres": pgtest.New(t), "sqlite": "sqlite:" + filepath.Join(t.TempDir(), "c.db")} {
		db, how := migrated(t, url), map[string]string{"postgres": "EXPLAIN ", "sqlite": "EXPLAIN QUERY PLAN "}[backend]
		wanted := map[string]string{"postgres": "Index Scan Backward using obs_event_pkey", "sqlite": "SEARCH obs_event USING PRIMARY KEY (stream=?)"}[backend]
		if backend == "postgres" { // It sorts what it knows to be few.
			for _, text := range []string{
				`INSERT INTO obs_event (stream, seq, event_id, type, subject, version, change, time, data)
				 SELECT s, g, gen_random_uuid(), 't', 's', 1, 'new', now(), '{}' FROM unnest(ARRAY['orders', 'stock']) s, generate_series(1, 10000) g`,
				`ANALYZE obs_event`,
			} {
				if _, err := db.Main.ExecContext(t.Context(), db.Rendering().SQL(text)); err != nil {
					t.Fatal(err)
				}
			}
		}
		plan := explain(t, db, how+textsOf(backend).Latest, "orders", 100, false)
		if !strings.Contains(plan, wanted) || strings.Contains(strings.ToUpper(plan), "SORT") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s plans\n%s", backend, plan)
		}
	}
}

// TestBacklogReadsOneEventOfAStream reads the plan of what each relay asks twice a second:
// how long the log is must not count.
func TestBacklogReadsOneEventOfAStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ url, fill, analyze, explain, want string }{
		"PostgreSQL": {
			pgtest.New(t), `SELECT 'orders', g, gen_random_uuid(), 't', 's', 1, 'new', now(), '{}' FROM generate_series(1, 20000) g`,
			`ANALYZE`, "EXPLAIN ", "Index Scan using obs_event_pkey on obs_event",
		},
		"SQLite": {
			"sqlite:" + filepath.Join(t.TempDir(), "c.db"), `WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < 20000)
			 SELECT 'orders', n, hex(randomblob(16)), 't', 's', 1, 'new', '2026-01-01 00:00:00.000000', '{}' FROM g`,
			`ANALYZE`, "EXPLAIN QUERY PLAN ", "SEARCH n USING PRIMARY KEY (stream=? AND seq>?)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := migrated(t, c.url)
			for _, text := range []string{
				`INSERT INTO obs_event (stream, seq, event_id, type, subject, version, change, time, data) ` + c.fill,
				`INSERT INTO obs_cursor (stream, last_seq) VALUES ('orders', 20000)`, c.analyze,
			} {
				if _, err := db.Main.ExecContext(t.Context(), db.Rendering().SQL(text)); err != nil {
					t.Fatal(err)
				}
			}
			if p := explain(t, db, c.explain+logTexts.Backlog, "file"); !strings.Contains(p, c.want) || strings.Contains(p, "Sort Key: e.") {
				t.Errorf("it is planned as\n%s", p)
			}
		})
	}
}

// TestBeforeSearchesByTime has events of one stream, an hour after each other, of which
// the janitor has removed the first ten.
func TestBeforeSearchesByTime(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	for name, url := range map[string]string{"SQLite": "sqlite:" + filepath.Join(t.TempDir(), "c.db"), "PostgreSQL": pgtest.New(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := migrated(t, url)
			for seq := int64(11); seq <= 40; seq++ {
				_, err := db.Exec(t.Context(), "write an event", db.Rendering().SQL(`
					INSERT INTO obs_event (stream, seq, event_id, type, subject, version, change, time, logged_at, data)
					VALUES ('orders', $1, $2, 't', 's', 1, 'new', $3, $3, '{}')`),
					seq, uuid.NewString(), db.TimeArg(begin.Add(time.Duration(seq)*time.Hour)))
				if err != nil {
					t.Fatal(err)
				}
			}
			log := New(db, Options{Logger: slog.New(slog.DiscardHandler)})
			for _, c := range []struct {
				at   time.Duration
				want int64
			}{{0, 0}, {11 * time.Hour, 0}, {11*time.Hour + 1, 11}, {25 * time.Hour, 24}, {25*time.Hour + time.Minute, 25}, {40 * time.Hour, 39}, {41 * time.Hour, 40}} {
				before, err := log.Before(t.Context(), "orders", 40, begin.Add(c.at))
				// Where nothing was left out, it is as good to begin anywhere before the first event.
				if err != nil || before != c.want && (c.want != 0 || before > 10) {
					t.Errorf("Before(%v) = %d, %v; want %d", c.at, before, err, c.want)
				}
			}
			if before, err := log.Before(t.Context(), "none", 7, begin); err != nil || before != 0 {
				t.Errorf("a stream without events: %d, %v", before, err)
			}
		})
	}
}

// migrated opens a new database.
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
	return db
}

// explain returns the last column of a plan.
func explain(t *testing.T, db *sqldb.DB, text string, args ...any) string {
	t.Helper()
	rows, err := db.Main.QueryContext(t.Context(), db.Rendering().SQL(text), args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	for rows.Next() {
		into := make([]any, len(columns))
		for i := range into {
			into[i] = new(any)
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&plan, *into[len(into)-1].(*any))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
