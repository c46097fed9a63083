package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// What an error says while rows are read may come from them, whatever its code.
func TestErrorsWithholdValues(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	exec(t, connect(t, url), strings.ReplaceAll(`CREATE TABLE orders (id int PRIMARY KEY, v text); INSERT INTO orders VALUES (1, 'pg_class'), (2, '{mark}');
		CREATE FUNCTION leak(code text, v text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
			IF v LIKE '{mark}%' THEN RAISE EXCEPTION '%', v USING ERRCODE = code, DETAIL = v, HINT = v, CONSTRAINT = v, TABLE = v, COLUMN = v; END IF;
			RETURN v; END $$;
		CREATE TABLE common AS SELECT n AS id, '{mark}' AS v FROM generate_series(1, 9) n; ANALYZE common;
		CREATE OPERATOR === (FUNCTION = has_table_privilege, LEFTARG = text, RIGHTARG = text, RESTRICT = eqsel);
		CREATE VIEW estimated AS SELECT id FROM common WHERE v === 'SELECT';
		CREATE FUNCTION rash() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
			RAISE EXCEPTION '%', (SELECT v FROM orders WHERE id = 2) USING ERRCODE = '42501'; END $$`, "{mark}", sourcetest.Mark))
	s := open(t, postgres.Options{URL: url})
	estimated(t, s)
	for sql, want := range map[string]struct {
		class observer.Class
		code  string
	}{
		"to_tsquery(v || ' & ')::text": {observer.ClassQuery, "42601"},
		"v::regclass::text":            {observer.ClassQuery, "42P01"},
		"v::regtype::text":             {observer.ClassQuery, "42704"},
		"v::regproc::text":             {observer.ClassQuery, "42883"},
		"current_setting(v)":           {observer.ClassQuery, "42704"},
		"v::int":                       {observer.ClassData, "22P02"},
		"leak('08006', v)":             {observer.ClassUnreachable, "08006"},
		"leak('23514', v)":             {observer.ClassUnknown, "23514"},
		"leak('25006', v)":             {observer.ClassQuery, "25006"},
		"leak('28P01', v)":             {observer.ClassQuery, "28P01"},
		"leak('3D000', v)":             {observer.ClassSettings, "3D000"},
		"leak('3F000', v)":             {observer.ClassQuery, "3F000"},
		"leak('42501', v)":             {observer.ClassQuery, "42501"},
		"leak('42P01', v)":             {observer.ClassQuery, "42P01"},
		"leak('53100', v)":             {observer.ClassResource, "53100"},
		"leak('57014', v)":             {observer.ClassTimeout, "57014"},
		"leak('57P05', v)":             {observer.ClassKilled, "57P05"},
		"leak('25P03', v)":             {observer.ClassKilled, "25P03"},
		"leak('25P04', v)":             {observer.ClassKilled, "25P04"},
		"leak('P0001', v)":             {observer.ClassUnknown, "P0001"},
		"rash()":                       {observer.ClassQuery, "42501"},
	} {
		q := observer.Query{SQL: "SELECT id, CASE WHEN id > 1 THEN " + sql + "::text END AS v FROM orders ORDER BY id", Key: []string{"id"}}
		err := sourcetest.Withheld(t, s, q)
		sourcetest.Refusal(t, err, want.class, want.code, "(SQLSTATE "+want.code)
		if strings.HasPrefix(want.code, "42") {
			sourcetest.Refusal(t, err, want.class, want.code, source.Withheld)
		}
		// The search for two rows with one key reads rows as well.
		q.SQL, q.Key = "SELECT "+sql+"::text AS v FROM orders", []string{"v"}
		sourcetest.Refusal(t, sourcetest.Withheld(t, s, q), want.class, want.code)
	}
}

// The planner calls operators over the most common values of a column, and their errors
// may have no context that would tell.
func estimated(t *testing.T, s *postgres.Source) {
	for _, q := range []observer.Query{{Table: "estimated"}, {SQL: "SELECT id FROM common WHERE v === 'SELECT'"}} {
		q.Key = []string{"id"}
		err := sourcetest.Withheld(t, s, q)
		sourcetest.Refusal(t, err, observer.ClassQuery, "42P01", "a table does not exist (SQLSTATE 42P01)", source.Sound)
	}
}

// What the server says of the statement alone is quoted, and rights that are missing are
// named by the catalogue.
func TestErrorsNameWhatTheStatementLacks(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	exec(t, owner, `CREATE TABLE hidden (id int); CREATE VIEW shown AS SELECT id FROM hidden; CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (1);
		CREATE FUNCTION plain(int) RETURNS int LANGUAGE sql AS 'SELECT $1 + random()::int'; REVOKE ALL ON FUNCTION plain FROM PUBLIC`)
	stranger := open(t, postgres.Options{URL: pgtest.NewRole(t, address, "SELECT ON shown"), QueryTimeout: 10 * time.Second})
	for _, test := range []struct {
		s     *postgres.Source
		query observer.Query
		code  string
		words string
	}{
		{stranger, observer.Query{Table: "orders"}, "42501", "permission denied for table orders (SQLSTATE 42501)"},
		{stranger, observer.Query{SQL: "SELECT id FROM orders"}, "42501", "permission denied for table orders (SQLSTATE 42501)"},
		{stranger, observer.Query{SQL: "SELECT plain(i) AS id FROM generate_series(1, 2) i"}, "42501", "permission denied for function plain (SQLSTATE 42501)"},
		{stranger, observer.Query{SQL: "SELECT id FROM shown JOIN orders USING (id)"}, "42501", "permission denied for table orders"},
		{stranger, observer.Query{SQL: "SELECT id FROM ordres"}, "42P01", `relation "ordres" does not exist (SQLSTATE 42P01`},
	} {
		test.query.Key = []string{"id"}
		sourcetest.Refusal(t, sourcetest.Withheld(t, test.s, test.query), observer.ClassQuery, test.code, test.words)
	}
}
