package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

func TestValues(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := open(t, postgres.Options{URL: url})
	// What a database sets for its sessions must not show in the values.
	writer := connect(t, url)
	exec(t, writer, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''Asia/Tokyo''', current_database());
		EXECUTE format('ALTER DATABASE %I SET datestyle = ''German''', current_database());
		EXECUTE format('ALTER DATABASE %I SET extra_float_digits = -5', current_database());
		EXECUTE format('ALTER DATABASE %I SET bytea_output = ''escape''', current_database()); END $$`)
	exec(t, writer, `CREATE DOMAIN quantity AS int; CREATE TYPE colour AS ENUM ('red')`)
	for _, test := range []struct{ value, want string }{
		{"true", "true"}, {"false", "false"}, {"NULL::int", "null"},
		{"(-32768)::int2", "-32768"}, {"7::quantity", "7"}, {"42::oid", "42"},
		{"1e-30::numeric", "0.000000000000000000000000000001"}, {"1e40::numeric", "1" + strings.Repeat("0", 40)},
		{"1.50::numeric", "1.50"}, {"'NaN'::numeric", `"NaN"`}, {"'-Infinity'::numeric", `"-Infinity"`},
		{"0.1::float8 + 0.2::float8", "0.30000000000000004"}, {"1e300::float8", "1e+300"}, {"'NaN'::float8", `"NaN"`},
		{"1e-05::float8", "1e-05"}, {"'-0'::float8", "-0"},
		{"0.1::float4", "0.1"}, {"'Infinity'::float4", `"Infinity"`},
		{`'{"b": [1, 2.50], "a" : "x \" y: z"}'::json`, `{"b":[1,2.50],"a":"x \" y: z"}`},
		{`'{"a": {"n": 12345678901234567890.5}}'::jsonb`, `{"a":{"n":12345678901234567890.5}}`}, {`'null'::jsonb`, "null"},
		{"'2024-03-31 01:30:00.5+02'::timestamptz", `"2024-03-30T23:30:00.5Z"`},
		{"'2024-03-31 01:30:00'::timestamptz AT TIME ZONE 'UTC'", `"2024-03-31T01:30:00"`},
		{"'2026-03-29 03:30:00.5+02'::timestamptz", `"2026-03-29T01:30:00.5Z"`}, {"'2026-03-29 01:30:00.5'::timestamp", `"2026-03-29T01:30:00.5"`},
		{"'2026-03-29'::date", `"2026-03-29"`},
		{"'infinity'::timestamptz", `"infinity"`}, {"'0044-03-15 00:00:00 BC'::timestamp", `"0044-03-15 00:00:00 BC"`},
		{"'2024-02-29'::date", `"2024-02-29"`}, {"'12:30'::time", `"12:30:00"`}, {"'36 hours'::interval", `"PT36H"`},
		{`'\xdeadbeef'::bytea`, `"3q2+7w=="`}, {`''::bytea`, `""`},
		{"'red'::colour", `"red"`}, {"ARRAY[1,2]", `"{1,2}"`}, {"'ab'::char(4)", `"ab  "`}, {`E'tab\t"q"'`, `"tab\t\"q\""`},
		{"'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`},
	} {
		q := observer.Query{SQL: "SELECT 1 AS id, " + test.value + " AS v", Key: []string{"id"}, Columns: []string{"v"}}
		q.SQL = strings.Replace(q.SQL, "'2024-03-31 01:30:00'::timestamptz", "'2024-03-31 01:30:00Z'::timestamptz", 1)
		rows := sourcetest.ReadAll(t, s, q, observer.Range{})
		if want := `{"v":` + test.want + `}`; len(rows) != 1 || string(rows[0].Data) != want || rows[0].Err != nil {
			t.Errorf("%s: row = %s, %v, want %s", test.value, rows[0].Data, rows[0].Err, want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := open(t, postgres.Options{URL: url})
	exec(t, connect(t, url), `CREATE SCHEMA wms; CREATE TABLE wms."Order ""Lines""" ("Id" int PRIMARY KEY, "a.b" int);
		INSERT INTO wms."Order ""Lines""" VALUES (1, 2); CREATE TABLE public.twins (id int, "ID" int)`)
	rows := sourcetest.ReadAll(t, s, observer.Query{Table: `wms.Order "Lines"`, Key: []string{"Id"}}, observer.Range{})
	if len(rows) != 1 || string(rows[0].Data) != `{"Id":1,"a.b":2}` {
		t.Errorf("rows = %+v", rows)
	}
	if rows := sourcetest.ReadAll(t, s, observer.Query{Table: `WMS.ORDER "LINES"`, Key: []string{"id"}}, observer.Range{}); len(rows) != 1 {
		t.Errorf("in another case: rows = %+v", rows)
	}
	var missing *source.MissingError
	_, err := s.Describe(t.Context(), observer.Query{Table: "twins", Key: []string{"Id"}})
	if !errors.As(err, &missing) || len(missing.Nearest) != 2 {
		t.Errorf("a name that fits two columns: %v", err)
	}
	_, err = s.Describe(t.Context(), observer.Query{SQL: "SELECT 1 AS id, 2 AS id", Key: []string{"id"}})
	if err == nil || !strings.Contains(err.Error(), "two columns") {
		t.Errorf("two columns of one name: %v", err)
	}
}

// A domain over a domain is what is below both, in a table as in a query.
func TestDomains(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	exec(t, connect(t, url), `CREATE DOMAIN quantity AS int; CREATE DOMAIN pieces AS quantity CHECK (VALUE > 0); CREATE DOMAIN packed AS pieces;
		CREATE TABLE orders (id int PRIMARY KEY, a quantity, b pieces, c packed); INSERT INTO orders VALUES (1, 2, 3, 4)`)
	s := open(t, postgres.Options{URL: url})
	for _, q := range []observer.Query{{Table: "orders"}, {SQL: "SELECT * FROM orders"}} {
		q.Key = []string{"id"}
		if rows := sourcetest.ReadAll(t, s, q, observer.Range{}); len(rows) != 1 || string(rows[0].Data) != `{"id":1,"a":2,"b":3,"c":4}` {
			t.Errorf("rows = %s", rows[0].Data)
		}
	}
}

// Values outside of the years 1 to 9999 are poison, and never move a cursor.
func TestCursorEdges(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, postgres.Options{URL: url, Location: berlin})
	exec(t, connect(t, url), `CREATE TABLE edges (id serial PRIMARY KEY, tz timestamptz, wall timestamp, day date);
		INSERT INTO edges (tz, wall, day) VALUES
		('2024-07-01 10:00:00.000001Z', '2024-07-01 10:00:00.5', '2024-07-01'),
		('0001-01-01 00:00:00Z', '9999-12-31 23:59:59.999999', '0001-01-01'),
		('infinity', '-infinity', 'infinity'), ('10000-01-01Z', '10000-01-01', '10000-01-01'),
		('0044-03-15 00:00:00Z BC', '0044-03-15 BC', '0044-03-15 BC')`)
	for column, want := range map[string][2]string{
		"tz":   {"2024-07-01 10:00:00.000001", "2024-07-01T10:00:00.000001Z"},
		"wall": {"2024-07-01 10:00:00.500000", "2024-07-01T08:00:00.5Z"},
		"day":  {"2024-07-01", "2024-06-30T22:00:00Z"},
	} {
		q := observer.Query{Table: "edges", Key: []string{"id"}, Timestamp: column}
		good := 0
		for _, row := range sourcetest.ReadAll(t, s, q, observer.Range{}) {
			if row.Err == nil {
				good++
			} else if row.Cursor != "" || !row.Time.IsZero() {
				t.Errorf("%s: row %+v has an instant and a fault", column, row)
			}
			if row.Key == "1" && (row.Cursor != want[0] || row.Time.UTC().Format(time.RFC3339Nano) != want[1]) {
				t.Errorf("%s: cursor %s at %s, want %v", column, row.Cursor, row.Time.UTC(), want)
			}
		}
		if good != 2 {
			t.Errorf("%s: %d good rows, want 2", column, good)
		}
		from := sourcetest.ReadAll(t, s, q, observer.Range{From: want[0]})
		if len(from) == 0 || from[0].Key != "1" {
			t.Errorf("%s: from %s the first row is %+v", column, want[0], from)
		}
		if h, err := s.Horizon(t.Context(), q); err != nil || len(h.Cursor) != len(want[0]) || s.Compare(h.Cursor, want[0]) <= 0 {
			t.Errorf("%s: horizon %+v, %v", column, h, err)
		}
	}
	_, err = s.Horizon(t.Context(), observer.Query{Table: "edges", Key: []string{"id"}, Timestamp: "id"})
	if err == nil || !strings.Contains(err.Error(), "column id cannot order the rows") {
		t.Errorf("an integer as timestamp: %v", err)
	}
}
