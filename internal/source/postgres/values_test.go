package postgres_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/bouncertest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

func TestValues(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := open(t, postgres.Options{URL: against["database"](t, url)})
	exec(t, connect(t, url), `CREATE DOMAIN quantity AS int; CREATE TYPE colour AS ENUM ('red')`)
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

// settings are those that decide the text of a value or of a name, a value that shows in
// it, and the one that a read has.
var settings = []struct{ name, against, pinned string }{
	{"client_encoding", "LATIN1", "UTF8"},
	{"standard_conforming_strings", "off", "on"},
	{"timezone", "Asia/Tokyo", "UTC"},
	{"datestyle", "German", "ISO, DMY"}, // Its order is that in which a query reads a text.
	{"intervalstyle", "sql_standard", "iso_8601"},
	{"bytea_output", "escape", "hex"},
	{"extra_float_digits", "-5", "3"},
	{"lc_monetary", "C.UTF-8", "C"},
	{"xmlbinary", "hex", "base64"},
	{"quote_all_identifiers", "on", "off"},
	// Limits decide whether there are rows at all.
	{"statement_timeout", "10s", "0"},
	{"lock_timeout", "10s", "1ms"},
	{"transaction_isolation", "", "repeatable read"},
	{"transaction_read_only", "", "on"},
}

// against sets all of them against a reader, in each way that there is.
var against = map[string]func(t *testing.T, address string) string{
	"role": hostileRole,
	"role behind PgBouncer": func(t *testing.T, address string) string {
		return bouncertest.Start(t, hostileRole(t, address), bouncertest.Options{Mode: bouncertest.Transaction}).URL()
	},
	"database": func(t *testing.T, address string) string {
		hostile(func(name, value string) {
			exec(t, connect(t, address), fmt.Sprintf(`ALTER DATABASE "%s" SET %s = '%s'`, parsed(t, address).Path[1:], name, value))
		})
		return reader(t, address)
	},
	"options": func(t *testing.T, address string) string {
		var options []string
		hostile(func(name, value string) { options = append(options, "-c "+name+"="+value) })
		return with(t, reader(t, address), "options", strings.Join(options, " "))
	},
	"parameters": func(t *testing.T, address string) string {
		address = reader(t, address)
		hostile(func(name, value string) {
			if name != "lc_monetary" { // This is how it is chosen.
				address = with(t, address, strings.ToUpper(name), value)
			}
		})
		return address
	},
}

func hostileRole(t *testing.T, address string) string {
	role := reader(t, address)
	hostile(func(name, value string) {
		exec(t, connect(t, address), fmt.Sprintf(`ALTER ROLE "%s" SET %s = '%s'`, parsed(t, role).User.Username(), name, value))
	})
	return role
}

func hostile(set func(name, value string)) {
	for _, s := range settings {
		if s.against != "" {
			set(s.name, s.against)
		}
	}
}

func reader(t *testing.T, address string) string {
	return pgtest.NewRole(t, address, "pg_read_all_data")
}

func parsed(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// with adds a parameter to a URL.
func with(t *testing.T, address, name, value string) string {
	t.Helper()
	u := parsed(t, address)
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return u.String()
}

// TestSettings has everything set against us: the same rows come, under the same columns.
func TestSettings(t *testing.T) {
	t.Parallel()
	for way, set := range against {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			address := pgtest.New(t)
			exec(t, connect(t, address), `CREATE TYPE "Maß" AS ENUM ('groß'); CREATE TABLE orders (id text PRIMARY KEY, größe "Maß", at timestamptz, wall timestamp,
				day date, dauer interval, raw bytea, f float8, price money, doc xml, rel regclass);
				INSERT INTO orders VALUES ('ü', 'groß', '2026-03-29 01:30:00.5Z', '2026-03-29 01:30:00.5', '2026-03-29', '1 day 2 hours', '\x00ff',
				0.1::float8 + 0.2::float8, 1234.5, '<a>€</a>', 'orders')`)
			table := observer.Query{Table: "orders", Key: []string{"id"}, Timestamp: "at"}
			made := observer.Query{SQL: `SELECT id, 'a\b' AS text, xmlelement(name a, raw) AS doc FROM orders`, Key: []string{"id"}}
			plain := open(t, postgres.Options{URL: reader(t, address)})
			d, err := plain.Describe(t.Context(), table)
			if err != nil {
				t.Fatal(err)
			}

			s := open(t, postgres.Options{URL: set(t, address)})
			for want, q := range map[string]observer.Query{
				`{"id":"ü","größe":"groß","at":"2026-03-29T01:30:00.5Z","wall":"2026-03-29T01:30:00.5","day":"2026-03-29","dauer":"P1DT2H",` +
					`"raw":"AP8=","f":0.30000000000000004,"price":"$1,234.50","doc":"<a>€</a>","rel":"orders"}`: table,
				`{"id":"ü","text":"a\\b","doc":"<a>AP8=</a>"}`: made,
			} {
				if got := sourcetest.ReadAll(t, s, q, observer.Range{}); len(got) != 1 || got[0].Key != "ü" || string(got[0].Data) != want {
					t.Errorf("row %s, %v; want %s", got[0].Data, got[0].Err, want)
				}
			}
			if got, err := s.Describe(t.Context(), table); err != nil || !slices.Equal(got.Columns, d.Columns) {
				t.Errorf("columns %+v, %v; want %+v", got.Columns, err, d.Columns)
			}
			for _, setting := range settings {
				row := sourcetest.ReadAll(t, s, observer.Query{SQL: "SELECT current_setting('" + setting.name + "') AS id", Key: []string{"id"}}, observer.Range{})[0]
				if row.Key != setting.pinned {
					t.Errorf("%s is %s in a read, want %s", setting.name, row.Key, setting.pinned)
				}
			}
		})
	}
}

// TestMoneyOfTheURL has a currency that the operator names.
func TestMoneyOfTheURL(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	exec(t, connect(t, address), `CREATE TABLE prices (id int PRIMARY KEY, price money)`)
	for value, named := range map[string]bool{"C": false, "C.UTF-8": true} {
		way := address
		if named {
			way = with(t, address, "lc_monetary", value)
		}
		s := open(t, postgres.Options{URL: way})
		rows := sourcetest.ReadAll(t, s, observer.Query{SQL: "SELECT current_setting('lc_monetary') AS id", Key: []string{"id"}}, observer.Range{})
		if len(rows) != 1 || rows[0].Key != value {
			t.Errorf("rows %+v, want %s", rows, value)
		}
		d, err := s.Describe(t.Context(), observer.Query{Table: "prices", Key: []string{"id"}})
		if err != nil || named == strings.Contains(strings.Join(d.Warnings, " "), "Column price is money") {
			t.Errorf("%s: warnings %q, %v", value, d.Warnings, err)
		}
	}
	_, err := open(t, postgres.Options{URL: with(t, address, "lc_monetary", "no_SUCH")}).Describe(t.Context(), observer.Query{Table: "prices", Key: []string{"id"}})
	sourcetest.Refusal(t, err, observer.ClassSettings, "22023", "lc_monetary", "no_SUCH")
}

// TestEncodings reads the same rows from databases in any encoding.
func TestEncodings(t *testing.T) {
	t.Parallel()
	for encoding, texts := range map[string][]string{
		"UTF8": {"Köln", "Ã¶", "€", "東京", "🚚"}, "LATIN1": {"Köln", "Ã¶"}, "WIN1252": {"Köln", "Ã¶", "€"}, "EUC_JP": {"Köln", "東京"},
	} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			address := pgtest.NewIn(t, encoding)
			writer := connect(t, address)
			exec(t, writer, `CREATE TABLE bücher (schlüssel text PRIMARY KEY, größe text, meta json)`)
			var want []string
			for _, text := range texts {
				exec(t, writer, fmt.Sprintf(`INSERT INTO bücher VALUES ('ü%[1]s', '%[1]s', '{"%[1]s": 1}')`, text))
				want = append(want, fmt.Sprintf(`ü%[1]s {"schlüssel":"ü%[1]s","größe":"%[1]s","meta":{"%[1]s":1}}`, text))
			}
			slices.Sort(want)
			if encoding == "UTF8" { // A pooler whose sessions have another, whatever its clients ask for.
				address = bouncertest.StandIn(t, with(t, address, "client_encoding", "LATIN1"))
			}
			s := open(t, postgres.Options{URL: address})
			for _, q := range []observer.Query{
				{Table: "bücher", Key: []string{"schlüssel"}},
				{SQL: "SELECT schlüssel, größe, meta FROM bücher WHERE schlüssel LIKE 'ü%'", Key: []string{"schlüssel"}},
			} {
				var got []string
				for _, row := range sourcetest.ReadAll(t, s, q, observer.Range{}) {
					got = append(got, row.Key+" "+string(row.Data))
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("rows %q, want %q", got, want)
				}
			}
		})
	}
}

// TestUnknownEncoding has a database that does not know which characters its bytes are.
func TestUnknownEncoding(t *testing.T) {
	t.Parallel()
	address := pgtest.NewIn(t, "SQL_ASCII")
	writer := connect(t, address)
	exec(t, writer, `CREATE TABLE orders (id text PRIMARY KEY, town text); INSERT INTO orders VALUES ('1', 'Bonn'), ('2', 'Köln'), ('ü', 'Bonn')`)
	exec(t, writer, `SET client_encoding = 'SQL_ASCII'`)
	if err := writer.PgConn().ExecParams(t.Context(), `INSERT INTO orders VALUES ('4', $1)`, [][]byte{[]byte("K\xf6ln")}, nil, nil, nil).Read().Err; err != nil {
		t.Fatal(err)
	}
	const ascii, text = "is not ASCII in a database whose encoding, SQL_ASCII", "is not valid text"
	for way, want := range map[string]map[string]string{
		address: {"1": "", "2": "column town " + ascii, "ü": "column id " + ascii, "4": "column town " + ascii},
		with(t, address, "client_encoding", "utf-8"): {"1": "", "2": "", "ü": "", "4": "column town " + text},
	} {
		rows := sourcetest.ReadAll(t, open(t, postgres.Options{URL: way}), observer.Query{Table: "orders", Key: []string{"id"}}, observer.Range{})
		if len(rows) != len(want) {
			t.Errorf("%d rows, want %d", len(rows), len(want))
		}
		for _, row := range rows {
			if fault, ok := want[row.Key]; !ok || (row.Err == nil) != (fault == "") || row.Err != nil && !strings.HasPrefix(row.Err.Error(), fault) {
				t.Errorf("row %s: %v, want %s", row.Key, row.Err, fault)
			}
		}
	}
}

// A relation may have 1,600 columns: no statement of a poll, or of a look at the query, may
// be longer, or take longer to plan, by more than their number.
func TestRelationsOfManyColumns(t *testing.T) {
	t.Parallel()
	const columns = 1596
	url := pgtest.New(t)
	owner := connect(t, url)
	exec(t, owner, "CREATE TABLE plain (id int PRIMARY KEY, at timestamptz NOT NULL, v"+strings.Join(numbers(columns), " text, v")+` text);
		INSERT INTO plain (id, at, v1595) VALUES (1, '2024-05-01 10:00Z', 'last'); CREATE VIEW shown AS SELECT * FROM plain`)
	s := open(t, postgres.Options{URL: url, QueryTimeout: 8 * time.Second})
	for _, table := range []string{"plain", "shown"} {
		q := observer.Query{Table: table, Key: []string{"id"}, Timestamp: "at"}
		_, describe := s.Describe(t.Context(), q)
		_, plan := s.Plan(t.Context(), q, observer.Range{})
		_, horizon := s.Horizon(t.Context(), q)
		if err := errors.Join(describe, plan, horizon); err != nil {
			t.Errorf("%s: %v", table, err)
		}
		// Rows that are sorted for a limit have their columns and what is selected side by side.
		rows := sourcetest.ReadAll(t, s, q, observer.Range{From: "2024-05-01 00:00:00.000000", Limit: 1})
		if len(rows) != 1 || rows[0].Err != nil || !strings.Contains(string(rows[0].Data), `"v1595":"last"`) {
			t.Errorf("%s: rows = %+v", table, rows)
		}
	}
}

func numbers(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = strconv.Itoa(i)
	}
	return texts
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
