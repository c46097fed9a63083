package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

const relations = eventsTable + `;
	CREATE MATERIALIZED VIEW refreshed AS SELECT * FROM events;
	CREATE VIEW direct AS SELECT * FROM events;
	CREATE VIEW nested AS SELECT d.* FROM direct d JOIN events e USING (id);
	CREATE TABLE parts (id int, at timestamptz NOT NULL) PARTITION BY RANGE (id);
	CREATE TABLE near PARTITION OF parts FOR VALUES FROM (100) TO (200) PARTITION BY RANGE (id);
	CREATE TABLE first PARTITION OF near FOR VALUES FROM (150) TO (200);
	CREATE VIEW parted AS SELECT * FROM parts;
	CREATE TABLE base (id int, at timestamptz NOT NULL);
	CREATE TABLE child () INHERITS (base);
	CREATE FUNCTION inlined() RETURNS SETOF events STABLE LANGUAGE sql AS 'SELECT * FROM events';
	CREATE FUNCTION refreshing() RETURNS SETOF events STABLE LANGUAGE sql AS 'SELECT * FROM refreshed';
	CREATE VIEW calling AS SELECT * FROM inlined();
	CREATE FUNCTION fit(int) RETURNS boolean LANGUAGE sql AS 'SELECT true';
	CREATE DOMAIN fitting AS int CHECK (fit(VALUE));
	CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq);
	CREATE VIEW converting AS SELECT id::fitting AS id, at FROM events;
	CREATE VIEW comparing AS SELECT * FROM events WHERE id === id;
	CREATE VIEW setting AS SELECT e.* FROM events e, (SELECT set_config('timezone', 'Asia/Tokyo', false) OFFSET 0) s WHERE s.set_config <> '';
	CREATE VIEW written AS SELECT id, at, at::text || ' jit ' || current_setting('jit') AS text FROM direct;
	CREATE VIEW running AS SELECT e.*, query_to_xml('SELECT 1', false, false, '')::text AS one FROM events e;
	CREATE VIEW xml AS SELECT e.*, table_to_xml(('ref' || 'reshed')::text::regclass, false, false, '')::text AS all FROM events e;
	CREATE VIEW json AS SELECT id, at, to_jsonb(e) AS row FROM events e;
	CREATE VIEW aggregated AS SELECT id, max(at) AS at, json_agg(e) AS rows FROM events e GROUP BY id;
	CREATE VIEW archived AS SELECT * FROM parts WHERE id >= 150;
	CREATE VIEW materialized AS SELECT * FROM refreshed;
	CREATE VIEW set_below AS SELECT * FROM setting`

// TestChangesBehindARelationAreNoticed by the poll after them, although it looks through
// nothing that has not changed.
func TestChangesBehindARelationAreNoticed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ table, change string }{
		"a view":                   {"direct", "CREATE OR REPLACE VIEW direct AS SELECT * FROM refreshed"},
		"a view below":             {"nested", "CREATE OR REPLACE VIEW direct AS SELECT * FROM refreshed"},
		"a view of another name":   {"nested", "ALTER VIEW nested RENAME TO former; CREATE VIEW nested AS SELECT * FROM refreshed; GRANT SELECT ON nested TO PUBLIC"},
		"a rule":                   {"nested", `CREATE OR REPLACE RULE "_RETURN" AS ON SELECT TO direct DO INSTEAD SELECT * FROM refreshing()`},
		"a partition":              {"parts", "ALTER TABLE parts ATTACH PARTITION distant FOR VALUES FROM (0) TO (100)"},
		"a partition of one":       {"parts", "ALTER TABLE near ATTACH PARTITION distant FOR VALUES FROM (100) TO (120)"},
		"a partition behind it":    {"parted", "ALTER TABLE near ATTACH PARTITION distant FOR VALUES FROM (100) TO (120)"},
		"a child":                  {"base", "ALTER FOREIGN TABLE distant INHERIT child"},
		"a function":               {"calling", "CREATE OR REPLACE FUNCTION inlined() RETURNS SETOF events STABLE LANGUAGE sql AS 'SELECT * FROM refreshed'"},
		"policies":                 {"events", "ALTER TABLE events ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON events USING (id IN (SELECT id FROM refreshed))"},
		"policies behind a view":   {"invoking", "ALTER TABLE events ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON events USING (id IN (SELECT id FROM refreshed))"},
		"policies of an other one": {"secured", "DROP POLICY p ON secured; CREATE POLICY p ON secured USING (id IN (SELECT id FROM refreshed))"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.New(t)
			owner := connect(t, address)
			elsewhere(t, owner)
			exec(t, owner, relations+`; CREATE VIEW invoking WITH (security_invoker) AS SELECT * FROM events;
				CREATE TABLE secured (LIKE events); ALTER TABLE secured ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON secured USING (id IN (SELECT id FROM direct))`)
			s := open(t, postgres.Options{URL: pgtest.NewRole(t, address, "SELECT ON ALL TABLES IN SCHEMA public", "pg_read_all_stats")})
			q := observer.Query{Table: test.table, Key: []string{"id"}, Timestamp: "at"}
			for range 3 {
				if h := horizon(t, s, q); !h.Exact {
					t.Fatalf("before the change: %+v", h)
				}
			}
			exec(t, owner, test.change)
			if h := horizon(t, s, q); h.Exact {
				t.Errorf("after the change: %+v", h)
			}
		})
	}
}

// TestWhatAViewExcludesDoesNotCount has a partition of another server, which the view does not show.
func TestWhatAViewExcludesDoesNotCount(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	elsewhere(t, owner)
	exec(t, owner, relations)
	s := open(t, postgres.Options{URL: address})
	notByOthers(t, s, observer.Query{Table: "archived"})
	exec(t, owner, "ALTER TABLE parts ATTACH PARTITION distant FOR VALUES FROM (0) TO (100)")
	for range 2 {
		notByOthers(t, s, observer.Query{Table: "archived"})
	}
}

// TestStatementsOfFormerStampsAreForgotten has a session prepare the read of a table that is emptied
// all the time, and of a view of it.
func TestStatementsOfFormerStampsAreForgotten(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	exec(t, owner, relations)
	s := open(t, postgres.Options{URL: address, PoolSize: 1})
	prepared := func() (names int) {
		q := observer.Query{SQL: "SELECT count(*) AS id FROM pg_prepared_statements WHERE name LIKE 'observerd%'", Key: []string{"id"}}
		for _, row := range sourcetest.ReadAll(t, s, q, observer.Range{}) {
			if _, err := fmt.Sscanf(string(row.Data), `{"id":%d}`, &names); err != nil {
				t.Fatal(err)
			}
		}
		return names
	}
	poll := func() {
		for _, table := range []string{"events", "direct"} {
			q := observer.Query{Table: table, Key: []string{"id"}, Timestamp: "at"}
			for range 2 {
				horizon(t, s, q)
			}
			sourcetest.ReadAll(t, s, q, observer.Range{Part: observer.PartDated, From: "2000-01-01 00:00:00.000000"})
		}
	}
	poll()
	before := prepared()
	for range 5 {
		exec(t, owner, "TRUNCATE events CASCADE")
		poll()
	}
	if after := prepared(); before == 0 || after != before {
		t.Errorf("the session has %d statements, and %d after the table was emptied", before, after)
	}
}

// TestWhatIsHiddenIsLookedThroughEachTime counts the statements of polls of what may read more than
// the catalogue says.
func TestWhatIsHiddenIsLookedThroughEachTime(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	exec(t, connect(t, address), relations)
	p := startPooler(t, address)
	s := open(t, postgres.Options{URL: p.url})
	for name, hidden := range map[string]bool{
		"nested": false, "written": false, "archived": false, "parted": false, "parts": false, "base": false,
		"calling": true, "converting": true, "comparing": true, "setting": true, "set_below": true,
		"xml": true, "running": true, "json": true, "aggregated": true, "materialized": true,
	} {
		least := 1000
		for range 5 {
			_, _, statements := p.poll(t, s, observer.Query{Table: name, Key: []string{"id"}, Timestamp: "at"})
			least = min(least, statements)
		}
		if (least > 6) != hidden {
			t.Errorf("a poll of %s has %d statements; hidden: %t", name, least, hidden)
		}
	}
}

// TestAViewThatChangesSettings does so for its own transaction at most.
func TestAViewThatChangesSettings(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	exec(t, connect(t, address), relations+"; INSERT INTO events VALUES (1, '2024-05-01 00:00:00+00')")
	s := open(t, postgres.Options{URL: address, PoolSize: 1})
	for _, table := range []string{"written", "setting", "written", "set_below", "written"} {
		q := observer.Query{Table: table, Key: []string{"id"}, Timestamp: "at"}
		var rows []observer.Row
		for tries := 0; tries < 50; tries++ { // A read long after its horizon takes a transaction with settings of its own.
			began := time.Now()
			horizon(t, s, q)
			rows = sourcetest.ReadAll(t, s, q, observer.Range{Part: observer.PartDated, From: "2000-01-01 00:00:00.000000"})
			if time.Since(began) < 100*time.Millisecond {
				break
			}
		}
		if len(rows) != 1 || table == "written" && !strings.Contains(string(rows[0].Data), `"2024-05-01 00:00:00+00 jit off"`) {
			t.Errorf("%s: %+v", table, rows)
		}
	}
}
