package postgres_test

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/source/sourcetest"
)

// rowsOf returns the rows of a SELECT, with intervals in the form of ISO 8601.
func rowsOf(t testing.TB, conn *pgx.Conn, text string) [][]string {
	t.Helper()
	results, err := conn.PgConn().Exec(t.Context(), "SET intervalstyle = 'iso_8601'; "+text).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var all [][]string
	for _, row := range results[len(results)-1].Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = string(cell)
		}
		all = append(all, cells)
	}
	return all
}

// written is the value as its type writes it. A cast to text writes a boolean and a
// char(n) in another way.
const written = "format('%s', v)"

// odd is a byte that is no text, which servers before PostgreSQL 16 hand over as it is.
func odd(t testing.TB, conn *pgx.Conn) []sourcetest.Odd {
	t.Helper()
	const char = `"char"`
	if utf8.ValidString(rowsOf(t, conn, "SELECT (-1)::"+char)[0][0]) {
		return nil
	}
	return []sourcetest.Odd{{Name: "a byte that is no text", Column: char, Good: "'a'", Bad: "(-1)::" + char, Fault: "is not valid text (UTF-8 without NUL)"}}
}

// edges are the types of PostgreSQL. Everything that is in no other list is text.
func edges() []sourcetest.Edge {
	var all []sourcetest.Edge
	add := func(says func(string) sourcetest.Said, column string, values ...string) *sourcetest.Edge {
		all = append(all, sourcetest.Edge{Column: column, Values: values, Text: written, Says: says})
		return &all[len(all)-1]
	}
	times := func(says func(string) sourcetest.Said, column string, values ...string) {
		e := add(says, column, values...)
		e.Times, e.Micros = true, "CASE WHEN isfinite(v) THEN (extract(epoch FROM v) * 1000000)::numeric(30, 0) END"
	}
	const (
		nan      = "'NaN'"
		infinity = "'Infinity'"
		below    = "'-Infinity'"
	)

	add(number, "smallint", "-32768", "32767", "0", "-1")
	add(number, "integer", "-2147483648", "2147483647", "0")
	add(number, "bigint", "-9223372036854775808", "9223372036854775807", "0", "9007199254740993")
	add(number, "oid", "0", "4294967295")
	add(number, "numeric", "0", "-0.0", "1.50", "-1", "1e-16383", "-1e-16383", "repeat('9', 131072)::numeric", "('-' || repeat('9', 131072))::numeric",
		"(repeat('9', 131072) || '.' || repeat('9', 16383))::numeric", "1e40", "0.1", nan, infinity, below)
	add(number, "numeric(1000, 1000)", "0", "('0.' || repeat('9', 1000))::numeric", "1e-1000")
	add(number, "numeric(38, 10)", "9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", "0.0000000001", "0", nan)
	add(number, "real", "3.4028235e38", "-3.4028235e38", "1.17549435e-38", "1e-45", "-1e-45", "0", "'-0'", "0.1", "16777217", "0.3333333333333333", nan, infinity, below)
	add(number, "double precision", "1.7976931348623157e308", "-1.7976931348623157e308", "2.2250738585072014e-308", "5e-324", "-5e-324", "0", "'-0'",
		"0.1", "0.1::float8 + 0.2", "9007199254740993", "123456789012345678", "1e15", "1e16", "1e-5", nan, infinity, below)
	add(boolean, "boolean", "true", "false")
	add(text, "money", "'-92233720368547758.08'", "'92233720368547758.07'", "0")

	times(moment, "timestamptz", "'4714-11-24 00:00:00+00 BC'", "'0001-12-31 23:59:59.999999+00 BC'", "'0001-01-01 00:00:00+00'", "'0001-01-01 00:00:00+15:59'",
		"'1582-10-15 00:00:00+00'", "'1890-01-01 00:00:00+00:53:28'", "'1969-12-31 23:59:59.999999+00'", "'1970-01-01 00:00:00+00'", "'2016-12-31 23:59:60+00'",
		"'2024-02-29 24:00:00+00'", "'2024-03-31 02:30:00.5+02'", "'2024-10-27 02:30:00.100000+01'", "'9999-12-31 23:59:59.999999+00'", "'9999-12-31 23:59:59.999999-15:59'",
		"'10000-01-01 00:00:00+00'", "'294276-12-31 23:59:59.999999+00'", "'infinity'", "'-infinity'")
	times(moment, "timestamp", "'4714-11-24 00:00:00 BC'", "'0001-12-31 23:59:59.999999 BC'", "'0001-01-01 00:00:00'", "'0001-01-01 00:00:00.000001'", "'1582-10-10 00:00:00'",
		"'1969-12-31 23:59:59.999999'", "'2000-01-01 00:00:00'", "'1999-12-31 23:59:59.999999'", "'2016-12-31 23:59:60'", "'2024-02-29 23:59:59.9'",
		"'9999-12-31 23:59:59.999999'", "'10000-01-01 00:00:00'", "'294276-12-31 23:59:59.999999'", "'infinity'", "'-infinity'")
	times(moment, "timestamp(0)", "'9999-12-31 23:59:59.4'", "'9999-12-31 23:59:59.9'", "'2024-02-29 00:00:00'")
	times(moment, "timestamptz(3)", "'2024-02-29 00:00:00.0005+00'", "'2024-02-29 00:00:00.1+00'")
	times(day, "date", "'4714-11-24 BC'", "'0001-12-31 BC'", "'0001-01-01'", "'1582-10-10'", "'1900-02-28'", "'2000-02-29'", "'2024-02-29'", "'9999-12-31'", "'10000-01-01'",
		"'5874897-12-31'", "'infinity'", "'-infinity'")
	add(text, "time", "'00:00:00'", "'24:00:00'", "'23:59:59.999999'", "'23:59:60'", "'00:00:00.000001'")
	add(text, "timetz", "'00:00:00+15:59:59'", "'24:00:00-15:59:59'", "'12:00:00.5+02'")
	add(text, "interval", "'0'", "'178000000 years'", "'-178000000 years'", "'2147483647 days'", "'-2147483648 days'", "'2562047788:00:54.775807'", "'-2562047788:00:54.775807'",
		"'1 mon -1 day +00:00:00.000001'", "'-00:00:00.000001'", "'36 hours'")

	add(text, "text", "''", "' '", "'a  '", "E'\\t\\n\\r'", "E'\\x01\\x1f\\x7f'", `'"quoted" \back'`, "U&'\\+01F69A'", "U&'\\+10FFFF'", "U&'\\FEFFa'", "U&'\\2028<&>\\2029'",
		"U&'e\\0301'", "U&'\\FFFF'", "repeat('ä', 512)", "repeat('ä', 513)", "repeat(U&'\\+01F69A', 20000)", "'null'", "'0001'")
	add(text, "varchar(3)", "''", "'a  '", "repeat(U&'\\+01F69A', 3)")
	add(text, "char(5)", "''", "'a'", "'ab  '", "repeat(U&'\\+01F69A', 5)")
	add(text, `"char"`, "'a'", "''", "(-1)::\"char\"", "127::\"char\"")
	add(text, "name", "''", "repeat('n', 63)")
	add(octets, "bytea", `''`, `'\x00'`, `'\x0000ff'`, `'\x61'`, `decode(repeat('00ff', 50000), 'hex')`, `'\x20'`)
	add(text, "bit(64)", "(-1)::bit(64)", "0::bit(64)")
	add(text, "bit varying", "''::bit varying", "B'0'", "B'10000000000000000000000000000000000000000000000000000000000000001'")
	add(text, "uuid", "'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'")
	add(text, "inet", "'0.0.0.0/0'", "'255.255.255.255'", "'::'", "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/127'", "'::ffff:10.0.0.1'")
	add(text, "cidr", "'0.0.0.0/0'", "'::/0'", "'10.0.0.0/8'")
	add(text, "macaddr8", "'00:00:00:00:00:00:00:00'", "'ff:ff:ff:ff:ff:ff:ff:ff'")
	add(document, "json", `'{"b" : [1, 2.50, 1e400, -0], "a": "x \" y: z", "a": null}'`, `'"\u0000 \ud83d\ude9a"'`, `'{ }'`, `'[]'`, `' "  " '`, "'12345678901234567890.5'", "'null'")
	add(document, "jsonb", `'{"b": [1, 2.50, -0.0], "a": null}'`, "'1e1000'", `('"' || repeat('ä', 1000) || '"')::jsonb`, "'true'", `'{}'`)
	add(text, "double precision[]", "'{}'", "'{NaN,Infinity,-0,5e-324,NULL}'", "'[-1:0]={1,2}'")
	add(text, "text[]", `ARRAY['', 'NULL', NULL, 'a,b', '"', E'\\']`)
	add(text, "numrange", "'empty'", "'(,)'", "'[-1.50,1e40)'")
	add(text, "tstzrange", "'[0044-03-15 00:00:00+00 BC,infinity]'")
	add(text, "point", "'(1.7976931348623157e308,-5e-324)'")
	add(text, "pg_lsn", "'0/0'", "'FFFFFFFF/FFFFFFFF'")
	add(text, "tsvector", "''", "'a:1A b'")
	return all
}

func text(text string) sourcetest.Said { return sourcetest.Said{Data: text, Key: text} }

func number(text string) sourcetest.Said {
	switch text {
	case "NaN", "Infinity", "-Infinity":
		return sourcetest.Said{Data: text, Key: text}
	}
	return sourcetest.Said{Data: sourcetest.Number(text), Key: text}
}

func boolean(text string) sourcetest.Said { return sourcetest.Said{Data: text == "t", Key: text} }

func document(text string) sourcetest.Said {
	return sourcetest.Said{Data: sourcetest.Document(text), Key: text}
}

func octets(text string) sourcetest.Said {
	raw, err := hex.DecodeString(strings.TrimPrefix(text, `\x`))
	if err != nil {
		panic(err)
	}
	return sourcetest.Said{Data: base64.StdEncoding.EncodeToString(raw), Key: text}
}

// ordinary is a timestamp of the years 1 to 9999; those of others have more digits, or
// an ending.
var ordinary = regexp.MustCompile(`^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d+)?(\+00)?$`)

func moment(text string) sourcetest.Said {
	parts := ordinary.FindStringSubmatch(text)
	if parts == nil {
		return sourcetest.Said{Data: text, Key: text}
	}
	data := parts[1] + "T" + parts[2] + parts[3]
	if parts[4] != "" {
		data += "Z"
	}
	cursor := parts[1] + " " + parts[2] + parts[3] + ".000000"[len(parts[3]):]
	return sourcetest.Said{Data: data, Key: text, Cursor: cursor}
}

var ordinaryDay = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)

func day(text string) sourcetest.Said {
	said := sourcetest.Said{Data: text, Key: text}
	if ordinaryDay.MatchString(text) {
		said.Cursor = text
	}
	return said
}
