package mysql_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/mariatest"
)

// hostile is a server whose settings would all show in the values or the number
// of rows, if they were left as they are.
func hostile(t *testing.T) string {
	return mariatest.Start(t, mariatest.Options{Settings: map[string]string{
		"default-time-zone":              "-08:00",
		"sql-mode":                       "ANSI_QUOTES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH,NO_BACKSLASH_ESCAPES",
		"character-set-server":           "latin1",
		"collation-server":               "latin1_german1_ci",
		"character-set-client-handshake": "OFF",
		"lc-time-names":                  "de_DE",
		"div-precision-increment":        "0",
		"group-concat-max-len":           "4",
		"max-statement-time":             "5",
		"init-connect": "SET SESSION sql_select_limit = 1, net_write_timeout = 1, character_set_results = latin1, character_set_client = latin1," +
			" collation_connection = latin1_german1_ci, time_zone = '-09:00', sql_mode = 'ANSI,HIGH_NOT_PRECEDENCE', sql_auto_is_null = 1, max_sort_length = 64, sql_big_selects = 0, wait_timeout = 1",
		"transaction-isolation":           "READ-UNCOMMITTED",
		"lower-case-table-names":          "0",
		"explicit-defaults-for-timestamp": "ON",
	}}).New(t)
}

func TestValues(t *testing.T) {
	t.Parallel()
	url := hostile(t)
	writer := mariatest.Connect(t, url, map[string]string{"sql_mode": "''", "time_zone": "'+00:00'", "max_statement_time": "0", "sql_select_limit": "DEFAULT"})
	// init-connect spares those who may do everything, so the reader is no such.
	exec(t, writer, `SET GLOBAL sql_quote_show_create = 0`)
	s := open(t, mysql.Options{URL: mariatest.NewRole(t, url, "SELECT ON `"+database(url)+"`.*")})
	for _, test := range []struct{ kind, value, want string }{
		{"bool", "true", "1"}, {"tinyint(1)", "-128", "-128"}, {"int", "NULL", "null"},
		{"smallint unsigned zerofill", "42", "42"}, {"bigint unsigned", "18446744073709551615", "18446744073709551615"},
		{"bit(1)", "b'1'", "1"}, {"bit(64)", "b'1111111111111111111111111111111111111111111111111111111111111111'", "18446744073709551615"},
		{"decimal(65,30)", "'12345678901234567890123456789012345.000000000000000000000000000001'", "12345678901234567890123456789012345.000000000000000000000000000001"},
		{"decimal(8,2) zerofill", "1.5", "1.50"}, {"decimal(3,2)", "-0.5", "-0.50"},
		{"float", "0.1", "0.1"}, {"float", "1e30", "1e30"}, {"double", "0.1", "0.1"}, {"double", "1.7976931348623157e308", "1.7976931348623157e308"},
		{"double", "-1.5", "-1.5"}, {"double zerofill", "1.5", "1.5"},
		{"json", `'{"b" : [1, 2.50], "a": "x \\" y: z"}'`, `{"b":[1,2.50],"a":"x \" y: z"}`},
		{"json", `'12345678901234567890.5'`, `12345678901234567890.5`}, {"longtext", `'{ }'`, `"{ }"`},
		{"timestamp(3)", "'2024-03-31 01:30:00.5'", `"2024-03-31T01:30:00.500Z"`}, {"timestamp NULL", "'2024-03-31 01:30:00'", `"2024-03-31T01:30:00Z"`},
		{"datetime(6)", "'2024-03-31 02:30:00.5'", `"2024-03-31T02:30:00.500000"`}, {"datetime", "'0000-00-00'", `"0000-00-00 00:00:00"`},
		{"timestamp(3)", "'2026-03-29 01:30:00.5'", `"2026-03-29T01:30:00.500Z"`}, {"datetime(3)", "'2026-03-29 01:30:00.5'", `"2026-03-29T01:30:00.500"`},
		{"date", "'2026-03-29'", `"2026-03-29"`}, {"year", "2026", `"2026"`},
		{"date", "'2024-02-29'", `"2024-02-29"`}, {"date", "'0000-00-00'", `"0000-00-00"`},
		{"time(3)", "'-838:59:59'", `"-838:59:59.000"`}, {"year", "2024", `"2024"`}, {"year", "0", `"0000"`},
		{"binary(4)", "x'deadbeef'", `"3q2+7w=="`}, {"blob", "''", `""`}, {"varbinary(9)", "x'00'", `"AA=="`},
		{"point", "ST_GeomFromText('POINT(0 0)')", `"AAAAAAEBAAAAAAAAAAAAAAAAAAAAAAAAAA=="`},
		{"enum('red','it''s')", "'it''s'", `"it's"`}, {"set('a','b')", "'a,b'", `"a,b"`}, {"char(4)", "'ab'", `"ab"`},
		{"varchar(9) character set latin1", "_latin1 x'e9'", `"é"`}, {"text character set utf8mb4", "_utf8mb4 x'f09f9a9a'", `"🚚"`},
		{"varchar(9) character set ucs2", "'ü'", `"ü"`}, {"uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`},
		{"inet6", "'::1'", `"::1"`},
	} {
		exec(t, writer, "CREATE OR REPLACE TABLE vals (id int PRIMARY KEY, v "+test.kind+")")
		exec(t, writer, "INSERT INTO vals VALUES (1, "+test.value+"), (2, NULL)")
		rows := sourcetest.ReadAll(t, s, observer.Query{Table: "vals", Key: []string{"id"}, Columns: []string{"v"}}, observer.Range{})
		if want := `{"v":` + test.want + `}`; len(rows) != 2 || string(rows[0].Data) != want || rows[0].Err != nil {
			t.Errorf("%s %s: %d rows, %s, %v, want %s", test.kind, test.value, len(rows), rows[0].Data, rows[0].Err, want)
		}
		// A query is read as the table is, but for what only the table tells.
		query := sourcetest.ReadAll(t, s, observer.Query{SQL: "SELECT id, v FROM vals", Key: []string{"id"}, Columns: []string{"v"}}, observer.Range{})
		if test.kind != "json" && (len(query) != 2 || string(query[0].Data) != string(rows[0].Data)) {
			t.Errorf("%s %s: the query gives %s, the table %s", test.kind, test.value, query[0].Data, rows[0].Data)
		}
	}
}

// TestSettings has settings of the server and of init_connect against us, which are all
// that there are: accounts and databases have none, and a URL cannot name any.
func TestSettings(t *testing.T) {
	t.Parallel()
	url := hostile(t)
	writer := mariatest.Connect(t, url, map[string]string{"sql_mode": "''"})
	exec(t, writer, "SET NAMES utf8mb4")
	exec(t, writer, "CREATE TABLE `bücher` (`schlüssel` varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, `größe` text CHARACTER SET utf16, town text CHARACTER SET latin1)")
	exec(t, writer, "INSERT INTO `bücher` VALUES ('ü', '東京', 'Köln'), ('Ã¶', '€🚚', 'Ã¶')")
	s := open(t, mysql.Options{URL: mariatest.NewRole(t, url, "SELECT ON `"+database(url)+"`.*")})
	got := map[string]string{}
	for _, row := range sourcetest.ReadAll(t, s, observer.Query{Table: "bücher", Key: []string{"schlüssel"}}, observer.Range{}) {
		got[row.Key] = string(row.Data)
	}
	if want := map[string]string{"ü": `{"schlüssel":"ü","größe":"東京","town":"Köln"}`, "Ã¶": `{"schlüssel":"Ã¶","größe":"€🚚","town":"Ã¶"}`}; !maps.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	for name, want := range map[string]string{
		"character_set_client": "'utf8mb4'", "character_set_connection": "'utf8mb4'", "character_set_results": "'utf8mb4'", "time_zone": "'+00:00'", "sql_mode": "''",
		"sql_select_limit": "18446744073709551615", "sql_auto_is_null": "0", "sql_quote_show_create": "1", "max_sort_length": "1024", "autocommit": "1", "sql_big_selects": "1", "wait_timeout": "600",
		// These decide what an expression of a query is, as its author has them, and no value of a column.
		"lc_time_names": "'de_DE'", "div_precision_increment": "0", "group_concat_max_len": "4",
	} {
		rows := sourcetest.ReadAll(t, s, observer.Query{SQL: "SELECT IF(@@" + name + " = " + want + ", 'so', 'otherwise') AS id", Key: []string{"id"}}, observer.Range{})
		if len(rows) != 1 || rows[0].Key != "so" {
			t.Errorf("%s is not %s: %+v", name, want, rows)
		}
	}
}

func database(url string) string { return url[strings.LastIndex(url, "/")+1:] }

func TestInvalidDocumentsArePoison(t *testing.T) {
	t.Parallel()
	url := mariatest.New(t)
	writer := connect(t, url)
	exec(t, writer, "CREATE TABLE docs (id int PRIMARY KEY, `it's ``a`` doc` json)")
	exec(t, writer, `SET check_constraint_checks = 0; INSERT INTO docs VALUES (1, '{"a": 1'), (2, '{"a": 1}')`)
	rows := sourcetest.ReadAll(t, open(t, mysql.Options{URL: url}), observer.Query{Table: "docs", Key: []string{"id"}}, observer.Range{})
	if len(rows) != 2 || rows[0].Err == nil || !strings.Contains(rows[0].Err.Error(), "is not valid JSON") ||
		rows[1].Err != nil || string(rows[1].Data) != "{\"id\":2,\"it's `a` doc\":{\"a\":1}}" {
		t.Errorf("rows = %+v", rows)
	}
}

// Keys are told apart by their bytes, whatever their collation says.
func TestKeys(t *testing.T) {
	t.Parallel()
	url := mariatest.New(t)
	writer, s := connect(t, url), open(t, mysql.Options{URL: url})
	exec(t, writer, `CREATE TABLE things (raw binary(3), flags bit(9), name varchar(20) COLLATE utf8mb4_general_ci, amount decimal(5,2));
		INSERT INTO things VALUES (x'00ff41', b'100000001', 'Key', 1.50), (x'00ff42', b'1', 'key', 1.50), (x'00ff43', b'1', 'kéy', 1.5)`)
	for column, want := range map[string]string{"raw": "00ff41 00ff42 00ff43", "flags": "257 1 1", "name": "Key key kéy", "amount": "1.5 1.5 1.5"} {
		var keys []string
		for _, row := range sourcetest.ReadAll(t, s, observer.Query{Table: "things", Key: []string{column}}, observer.Range{}) {
			keys = append(keys, row.Key)
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%s: keys %s, want %s", column, got, want)
		}
	}
	for column, want := range map[string]source.Answer{"name": source.Unknown, "raw": source.Unknown, "amount": source.No} {
		if d, err := s.Describe(t.Context(), observer.Query{Table: "things", Key: []string{column}}); err != nil || d.KeyUnique != want {
			t.Errorf("%s: unique %s, %v, want %s", column, d.KeyUnique, err, want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	url := mariatest.New(t)
	s, writer := open(t, mysql.Options{URL: url}), connect(t, url)
	exec(t, writer, "CREATE TABLE `Order ``Lines``?` (`Id?` int PRIMARY KEY, `a.b` int); INSERT INTO `Order ``Lines``?` VALUES (1, 2); CREATE TABLE twins (id int); CREATE TABLE TWINS (id int)")
	for _, table := range []string{"Order `Lines`?", database(url) + ".Order `Lines`?", "ORDER `LINES`?"} {
		rows := sourcetest.ReadAll(t, s, observer.Query{Table: table, Key: []string{"id?"}}, observer.Range{})
		if len(rows) != 1 || string(rows[0].Data) != `{"Id?":1,"a.b":2}` {
			t.Errorf("%s: rows = %+v", table, rows)
		}
	}
	var missing *source.MissingError
	_, err := s.Describe(t.Context(), observer.Query{Table: "Twins", Key: []string{"id"}})
	if !errors.As(err, &missing) || len(missing.Nearest) != 2 || observer.ClassOf(err) != observer.ClassQuery {
		t.Errorf("a name that fits two tables: %v", err)
	}
	if _, err = s.Describe(t.Context(), observer.Query{SQL: "SELECT 1 AS id, 2 AS id", Key: []string{"id"}}); observer.ClassOf(err) != observer.ClassQuery {
		t.Errorf("two columns of one name: %v", err)
	}
}

// What is no instant is poison, and never moves a cursor.
func TestCursorEdges(t *testing.T) {
	t.Parallel()
	url := mariatest.New(t)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, mysql.Options{URL: url, Location: berlin})
	writer := mariatest.Connect(t, url, map[string]string{"sql_mode": "'ALLOW_INVALID_DATES'"})
	exec(t, writer, `CREATE TABLE edges (id int AUTO_INCREMENT PRIMARY KEY, tz timestamp(6) NULL, wall datetime(1), plain datetime, day date);
		INSERT INTO edges (tz, wall, plain, day) VALUES
		('2024-07-01 10:00:00.000001', '2024-07-01 10:00:00.5', '2024-07-01 10:00:00', '2024-07-01'),
		('1970-01-01 00:00:01', '9999-12-31 23:59:59.9', '0001-01-01', '0001-01-01'),
		('0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00'),
		(0, '2023-02-30 10:00:00', '2024-00-00', '2024-04-31')`)
	for column, want := range map[string][2]string{
		"tz":    {"2024-07-01 10:00:00.000001", "2024-07-01T10:00:00.000001Z"},
		"wall":  {"2024-07-01 10:00:00.500000", "2024-07-01T08:00:00.5Z"},
		"plain": {"2024-07-01 10:00:00.000000", "2024-07-01T08:00:00Z"},
		"day":   {"2024-07-01", "2024-06-30T22:00:00Z"},
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
		if from := sourcetest.ReadAll(t, s, q, observer.Range{From: want[0]}); len(from) == 0 || from[0].Key != "1" {
			t.Errorf("%s: from %s the first row is %+v", column, want[0], from)
		}
		h, err := s.Horizon(t.Context(), q)
		if err != nil || len(h.Cursor) != len(want[0]) || s.Compare(h.Cursor, want[0]) <= 0 || s.Compare(h.Clock, h.Cursor) < 0 {
			t.Errorf("%s: horizon %+v, %v", column, h, err)
		}
	}
	_, err = s.Horizon(t.Context(), observer.Query{Table: "edges", Key: []string{"id"}, Timestamp: "id"})
	if err == nil || !strings.Contains(err.Error(), "column id cannot order the rows") {
		t.Errorf("an integer as timestamp: %v", err)
	}
}

// NULL comes first in this dialect; a limit must not end a read there.
func TestLimitBesideRowsWithoutTimestamp(t *testing.T) {
	t.Parallel()
	url := mariatest.New(t)
	writer := connect(t, url)
	exec(t, writer, `CREATE TABLE loose (id int PRIMARY KEY, at datetime);
		INSERT INTO loose VALUES (1, NULL), (2, '2024-05-01'), (3, NULL), (4, '2024-05-02'), (5, '2024-05-03'), (6, NULL)`)
	s := open(t, mysql.Options{URL: url})
	q := observer.Query{Table: "loose", Key: []string{"id"}, Timestamp: "at"}
	for name, test := range map[string]struct {
		in   observer.Range
		want string
	}{
		"from the beginning": {observer.Range{Limit: 2}, "2 4 1 3 6"},
		"from a cursor":      {observer.Range{From: "2024-05-02 00:00:00.000000", Limit: 1}, "4 1 3 6"},
		"up to a cursor":     {observer.Range{Before: "2024-05-03 00:00:00.000000", Limit: 5}, "2 4"},
	} {
		var keys []string
		for _, row := range sourcetest.ReadAll(t, s, q, test.in) {
			keys = append(keys, row.Key)
		}
		if got := strings.Join(keys, " "); got != test.want {
			t.Errorf("%s: keys %s, want %s", name, got, test.want)
		}
	}
}

// Zero dates come first and use up a limit, so the read that they fill is not
// the last of a sweep.
func TestSweepGoesOnBehindZeroDates(t *testing.T) {
	t.Parallel()
	url := mariatest.New(t)
	writer := connect(t, url)
	exec(t, writer, `CREATE TABLE old (id int PRIMARY KEY, at datetime)`)
	exec(t, writer, `INSERT INTO old SELECT seq, IF(seq < 4, '0000-00-00', '2024-05-01' + INTERVAL seq SECOND) FROM seq_1_to_20`)
	s := open(t, mysql.Options{URL: url})
	db := observertest.NewDB()
	o, err := observer.New(observer.Spec{
		Stream: "old", EventType: "Seen", Detect: observer.DetectNew,
		Query: observer.Query{Table: "old", Key: []string{"id"}, Timestamp: "at"},
		Start: observer.Start{At: time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Poll(t.Context(), s, db.Acquire()); err != nil {
		t.Fatal(err)
	}
	sweep := db.StartSweep("old", observer.SweepBackfill, "", "")
	for db.Sweep(sweep.ID).State == observer.SweepRunning {
		if _, _, err := o.Sweep(t.Context(), s, db.Acquire(), db.Sweep(sweep.ID), observer.Budget{Rows: 5}); err != nil {
			t.Fatal(err)
		}
	}
	if seen, dead := len(db.Events("old")), len(db.Dead("old")); seen != 17 || dead != 3 {
		t.Errorf("%d events and %d poison rows of 17 and 3", seen, dead)
	}
}
