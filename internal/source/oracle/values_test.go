package oracle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
)

// TestValues reads each value from a table and from a query, where the types
// come from the catalogue and from the driver.
func TestValues(t *testing.T) {
	t.Parallel()
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	d := emulate(t, engine.Options{OSZone: tokyo})
	s := d.open(oracle.Options{})
	for i, test := range []struct{ column, value, want string }{
		{"NUMBER", "0", "0"}, {"NUMBER(10)", "-32768", "-32768"}, {"NUMBER(12,2)", "1.5", "1.5"}, {"FLOAT", "0.25", "0.25"},
		{"NUMBER(38)", "12345678901234567890123456789012345678", "12345678901234567890123456789012345678"},
		{"NUMBER", "-0.000000000000000000000000000001", "-0.000000000000000000000000000001"},
		{"NUMBER", "1e40", "1" + strings.Repeat("0", 40)}, {"NUMBER", "NULL", "null"},
		{"BINARY_DOUBLE", "TO_BINARY_DOUBLE('0.1')", "0.1"}, {"BINARY_DOUBLE", "TO_BINARY_DOUBLE('1e300')", "1e+300"},
		{"BINARY_DOUBLE", "TO_BINARY_DOUBLE('NaN')", `"NaN"`}, {"BINARY_DOUBLE", "TO_BINARY_DOUBLE('-Inf')", `"-Infinity"`},
		{"BINARY_FLOAT", "TO_BINARY_DOUBLE('0.1')", "0.1"}, {"BINARY_FLOAT", "1234567", "1.234567e+06"}, {"BINARY_FLOAT", "-0.30000004", "-0.30000004"},
		{"BINARY_FLOAT", "TO_BINARY_DOUBLE('Inf')", `"Infinity"`}, {"BINARY_FLOAT", "TO_BINARY_DOUBLE('0.5')", "0.5"},
		{"VARCHAR2(20)", "'tab' || CHR(9) || '\"q\"'", `"tab\t\"q\""`}, {"VARCHAR2(20)", "'  two '", `"  two "`}, {"VARCHAR2(20)", "''", "null"},
		{"NVARCHAR2(20)", "N'grün 🚚'", `"grün 🚚"`}, {"CHAR(4)", "'ab'", `"ab"`}, {"NCHAR(4)", "N'ab'", `"ab"`}, {"CHAR(4)", "' '", `""`},
		{"DATE", "DATE '2024-02-29'", `"2024-02-29T00:00:00"`}, {"DATE", "TO_DATE('2024-03-31 02:30:00', 'YYYY-MM-DD HH24:MI:SS')", `"2024-03-31T02:30:00"`},
		{"TIMESTAMP(9)", "TIMESTAMP '2024-03-31 01:30:00.123456789'", `"2024-03-31T01:30:00.123456789"`},
		{"TIMESTAMP(6)", "TIMESTAMP '2024-03-31 01:30:00.5'", `"2024-03-31T01:30:00.5"`},
		{"TIMESTAMP(6)", "TIMESTAMP '2026-03-29 01:30:00.5'", `"2026-03-29T01:30:00.5"`},
		{"TIMESTAMP WITH TIME ZONE", "TIMESTAMP '2026-03-29 01:30:00.5 +02:00'", `"2026-03-29T01:30:00.5+02:00"`},
		{"TIMESTAMP WITH LOCAL TIME ZONE", "TIMESTAMP '2026-03-29 01:30:00.5 +02:00'", `"2026-03-28T23:30:00.5Z"`},
		{"DATE", "TO_DATE('-4712-01-01', 'SYYYY-MM-DD')", `"-4712-01-01T00:00:00"`},
		{"TIMESTAMP(0)", "TIMESTAMP '2024-03-31 01:30:00'", `"2024-03-31T01:30:00"`},
		{"TIMESTAMP WITH TIME ZONE", "TIMESTAMP '2024-03-31 01:30:00.5 -05:30'", `"2024-03-31T01:30:00.5-05:30"`},
		{"TIMESTAMP WITH TIME ZONE", "TIMESTAMP '2024-07-01 01:30:00 Europe/Berlin'", `"2024-07-01T01:30:00+02:00"`},
		{"TIMESTAMP WITH LOCAL TIME ZONE", "TIMESTAMP '2024-03-31 01:30:00.5 +02:00'", `"2024-03-30T23:30:00.5Z"`},
		{"RAW(4)", "HEXTORAW('DEADBEEF')", `"3q2+7w=="`}, {"RAW(4)", "NULL", "null"},
		{"CLOB", "'a note'", `"a note"`}, {"CLOB", "NULL", "null"},
	} {
		table := "values_" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26))
		d.exec("CREATE TABLE "+table+" (id NUMBER(5) PRIMARY KEY, v "+test.column+")", "INSERT INTO "+table+" VALUES (1, "+test.value+")")
		for _, q := range []observer.Query{
			{Table: table, Key: []string{"id"}, Columns: []string{"v"}},
			{SQL: "SELECT id, v FROM " + table, Key: []string{"id"}, Columns: []string{"v"}},
		} {
			rows, err := sourcetest.TryRead(s, q, observer.Range{})
			if want := `{"V":` + test.want + `}`; err != nil || len(rows) != 1 || string(rows[0].Data) != want || rows[0].Err != nil {
				t.Errorf("%s %s: rows = %+v, %v, want %s", test.column, test.value, rows, err, want)
			}
		}
	}
}

func TestKeysOfAllTypes(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{})
	s := d.open(oracle.Options{})
	d.exec("CREATE TABLE parts (pad CHAR(5), amount NUMBER, bytes RAW(4), day DATE, rest NUMBER)",
		"INSERT INTO parts VALUES ('ab', 0.5, HEXTORAW('00FF'), DATE '2024-05-01', 1)",
		"INSERT INTO parts VALUES (' ', 12345678901234567890, HEXTORAW('00FF'), DATE '2024-05-01', 2)")
	q := observer.Query{Table: "parts", Key: []string{"pad", "amount", "bytes", "day"}, Columns: []string{"rest"}}
	rows := sourcetest.ReadAll(t, s, q, observer.Range{})
	if len(rows) != 2 {
		t.Fatalf("rows = %+v", rows)
	}
	if rows[0].Key != "ab/0.5/00FF/2024-05-01T00:00:00" || rows[0].Err != nil {
		t.Errorf("rows = %+v", rows)
	}
	if rows[1].Err == nil || !strings.Contains(rows[1].Err.Error(), "column PAD is empty in the key") {
		t.Errorf("a key of blanks: %+v", rows[1])
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}, "reader")
	d.exec(`CREATE TABLE "Order Lines" ("Id" NUMBER PRIMARY KEY, "a.b" NUMBER)`, `INSERT INTO "Order Lines" VALUES (1, 2)`,
		"CREATE TABLE stock (id NUMBER PRIMARY KEY, amount NUMBER)", "INSERT INTO stock VALUES (7, 8)",
		"CREATE TABLE stock_b (id NUMBER PRIMARY KEY, place VARCHAR2(10))", "INSERT INTO stock_b VALUES (9, 'x')",
		"CREATE VIEW shelf AS SELECT id, amount FROM stock", `CREATE USER reader IDENTIFIED BY "x"`, "GRANT CREATE SESSION TO reader",
		"GRANT SELECT ON stock TO reader", "GRANT SELECT ON stock_b TO reader", "CREATE PUBLIC SYNONYM goods FOR stock", "CREATE SYNONYM reader.mine FOR app.stock")
	s := d.open(oracle.Options{URL: d.url("reader")})
	for table, want := range map[string]string{
		"app.stock": "7", "APP.STOCK": "7", "goods": "7", "GOODS": "7", "mine": "7", "reader.mine": "7",
	} {
		rows, err := sourcetest.TryRead(s, observer.Query{Table: table, Key: []string{"id"}}, observer.Range{})
		if err != nil || keysOf(rows) != want {
			t.Errorf("%s: keys = %s, %v, want %s", table, keysOf(rows), err, want)
		}
	}
	owner := d.open(oracle.Options{})
	for table, want := range map[string]string{"Order Lines": `{"Id":1,"a.b":2}`, "shelf": `{"ID":7,"AMOUNT":8}`} {
		rows, err := sourcetest.TryRead(owner, observer.Query{Table: table, Key: []string{"id"}}, observer.Range{})
		if err != nil || len(rows) != 1 || string(rows[0].Data) != want {
			t.Errorf("%s: rows = %+v, %v, want %s", table, rows, err, want)
		}
	}
	// A synonym that is made to lead elsewhere is followed by the next read.
	d.exec("CREATE OR REPLACE PUBLIC SYNONYM goods FOR stock_b")
	rows := sourcetest.ReadAll(t, s, observer.Query{Table: "goods", Key: []string{"id"}}, observer.Range{})
	if len(rows) != 1 || string(rows[0].Data) != `{"ID":9,"PLACE":"x"}` {
		t.Errorf("rows = %+v, want those of the other table", rows)
	}
}

func TestUnfitColumns(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{})
	s := d.open(oracle.Options{})
	d.exec("CREATE TABLE parts (id NUMBER PRIMARY KEY, photo BLOB, note CLOB, at TIMESTAMP)", "INSERT INTO parts (id) VALUES (1)")
	for want, q := range map[string]observer.Query{
		"DBMS_LOB.GETLENGTH(PHOTO) AS PHOTO_LENGTH":    {Table: "parts", Key: []string{"id"}},
		"NOTE of type CLOB cannot be part of a key":    {Table: "parts", Key: []string{"note"}, Columns: []string{"id"}},
		"ID of type NUMBER cannot order the rows":      {Table: "parts", Key: []string{"id"}, Columns: []string{"id"}, Timestamp: "id"},
		"the query returns two columns named \"ID\"":   {SQL: "SELECT id, id FROM parts", Key: []string{"id"}},
		"does not fit column AT: has its type changed": {Table: "parts", Key: []string{"id"}, Columns: []string{"id"}, Timestamp: "at"},
	} {
		in := observer.Range{}
		if q.Timestamp == "at" {
			in.From = "2024-05-01 10:00:00"
		}
		_, err := sourcetest.TryRead(s, q, in)
		if observer.ClassOf(err) != observer.ClassQuery || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", q, err, want)
		}
		if in.From == "" {
			if _, err := s.Describe(t.Context(), q); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: Describe: %v, want %s", q, err, want)
			}
		}
	}
	if rows := sourcetest.ReadAll(t, s, observer.Query{Table: "parts", Key: []string{"id"}, Columns: []string{"id"}}, observer.Range{}); len(rows) != 1 {
		t.Errorf("%d rows without the column that does not fit", len(rows))
	}
}

// A CLOB that is longer than a row may be never leaves the database.
func TestLongCLOB(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{})
	s := d.open(oracle.Options{})
	d.exec("CREATE TABLE notes (id NUMBER PRIMARY KEY, note CLOB)", "INSERT INTO notes VALUES (1, 'short')",
		"INSERT INTO notes VALUES (2, '"+strings.Repeat("long ", 700)+"')", "INSERT INTO notes VALUES (3, NULL)")
	q := observer.Query{Table: "notes", Key: []string{"id"}, MaxRowBytes: 1000}
	rows := sourcetest.ReadAll(t, s, q, observer.Range{})
	if len(rows) != 3 || rows[0].Err != nil || rows[2].Err != nil {
		t.Fatalf("rows = %+v", rows)
	}
	if err := rows[1].Err; err == nil || err.Error() != "the row is larger than 1000 bytes" || rows[1].Data != nil || rows[1].Key != "2" {
		t.Errorf("row = %s, %v", rows[1].Data, err)
	}
	q.MaxRowBytes = 5000
	if rows := sourcetest.ReadAll(t, s, q, observer.Range{}); rows[1].Err != nil || len(rows[1].Data) < 3500 {
		t.Errorf("with room: %d bytes, %v", len(rows[1].Data), rows[1].Err)
	}
	// Rows that may be large come a few at a time, as all of a fetch are in memory.
	for i := range 100 {
		d.exec(fmt.Sprintf("INSERT INTO notes VALUES (%d, 'another')", 10+i))
	}
	before := d.server.Fetches()
	if n := len(sourcetest.ReadAll(t, s, q, observer.Range{})); n != 103 || d.server.Fetches()-before < 103/16 {
		t.Errorf("%d rows in %d fetches", n, d.server.Fetches()-before)
	}
}
