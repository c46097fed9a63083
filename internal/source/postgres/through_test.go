package postgres_test

import (
	"strings"
	"testing"

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
	CREATE VIEW written AS SELECT id, at, at::text AS text FROM direct;
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

// TestWhatIsHiddenIsLookedThroughEachTime counts the statements of polls of what may read more than
// the catalogue says.
func TestWhatIsHiddenIsLookedThroughEachTime(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	exec(t, connect(t, address), relations)
	p := startPooler(t, address)
	s := open(t, postgres.Options{URL: p.url})
	for name, hidden := range map[string]bool{
		"nested": false, "written": false, "parted": false, "parts": false, "base": false,
		"calling": true, "converting": true, "comparing": true, "setting": true, "set_below": true,
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
		horizon(t, s, q)
		rows := sourcetest.ReadAll(t, s, q, observer.Range{Part: observer.PartDated, From: "2000-01-01 00:00:00.000000"})
		if len(rows) != 1 || table == "written" && !strings.Contains(string(rows[0].Data), `"2024-05-01 00:00:00+00"`) {
			t.Errorf("%s: %+v", table, rows)
		}
	}
}
