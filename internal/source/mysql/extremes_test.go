package mysql_test

import (
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"regexp"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/source/sourcetest"
)

// edges are the types of MariaDB, and of MySQL but for its own and MariaDB's. No text of
// the server has all digits of a FLOAT; TestFloats has those.
func edges() []sourcetest.Edge {
	var all []sourcetest.Edge
	add := func(says func(string) sourcetest.Said, text, column string, values ...string) *sourcetest.Edge {
		all = append(all, sourcetest.Edge{Column: column, Values: values, Text: text, Says: says})
		return &all[len(all)-1]
	}
	times := func(says func(string) sourcetest.Said, column string, values ...string) {
		e := add(says, written, column, values...)
		e.Times, e.Micros = true, "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', v)"
	}

	add(integer, written, "tinyint", "-128", "127", "0")
	add(integer, written, "tinyint unsigned", "255", "0")
	add(integer, written, "boolean", "true", "false")
	add(integer, written, "smallint", "-32768", "32767")
	add(integer, written, "mediumint", "-8388608", "8388607")
	add(integer, written, "mediumint unsigned", "16777215")
	add(integer, written, "int", "-2147483648", "2147483647")
	add(integer, written, "int(8) unsigned zerofill", "0", "7", "4294967295")
	add(integer, written, "bigint", "-9223372036854775808", "9223372036854775807", "0", "9007199254740993")
	add(integer, written, "bigint unsigned", "18446744073709551615", "0", "9223372036854775808")
	add(integer, "CAST(v AS UNSIGNED)", "bit(1)", "0", "1")
	add(integer, "CAST(v AS UNSIGNED)", "bit(9)", "0", "511", "256", "10")
	add(integer, "CAST(v AS UNSIGNED)", "bit(64)", "0", "18446744073709551615", "9223372036854775808")
	const nines = "99999999999999999999999999999999999"
	add(number, written, "decimal(65,30)", nines+".999999999999999999999999999999", "-"+nines+".999999999999999999999999999999", "0.000000000000000000000000000001", "0", "-0.0", "1.50")
	add(number, written, "decimal(65,0)", nines+"999999999999999999999999999999", "-"+nines+"999999999999999999999999999999")
	add(number, written, "decimal(38,38)", "0.99999999999999999999999999999999999999", "-0.00000000000000000000000000000000000001")
	add(number, written, "decimal(10,2) unsigned zerofill", "0", "7.5", "99999999.99")
	add(number, exact, "double", "1.7976931348623157e308", "-1.7976931348623157e308", "2.2250738585072014e-308", "2.2250738585072014e-307", "5e-324", "0", "-1e-200 * 1e-200", "0.1",
		"0.1e0 + 0.2e0", "9007199254740993", "1e15", "1e16", "1e-5", "-1.2345678901234567e-100")
	add(number, exact, "double unsigned zerofill", "0", "1.5", "1.7976931348623157e308")
	add(number, exact, "double(20,3)", "0.125", "12345678901234567.891", "-1.5")

	times(day, "date", "'0000-00-00'", "'2024-00-00'", "'2024-02-00'", "'2024-02-31'", "'0000-01-01'", "'0001-01-01'", "'1000-01-01'", "'1900-02-28'", "'2000-02-29'", "'9999-12-31'")
	times(moment, "datetime", "'0000-00-00'", "'2024-00-00 10:00:00'", "'2023-02-29 10:00:00'", "'0001-01-01'", "'9999-12-31 23:59:59'", "'2024-02-29 23:59:59'", "'1969-12-31 23:59:59'")
	times(moment, "datetime(6)", "'0000-00-00'", "'0000-01-01 00:00:00.5'", "'0001-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.999999'", "'2024-03-31 02:30:00.5'", "'2024-10-27 02:30:00.100000'")
	times(moment, "datetime(1)", "'9999-12-31 23:59:59.9'", "'2024-02-29 00:00:00'")
	times(zoned, "timestamp NULL", "'0000-00-00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'2024-02-29 23:59:59'")
	times(zoned, "timestamp(6) NULL", "'0000-00-00'", "'1970-01-01 00:00:00.000001'", "'1970-01-01 00:00:01.000001'", "'2038-01-19 03:14:07.999999'", "'2024-03-31 02:30:00.5'")
	add(plain, written, "time", "'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'", "'24:00:00'")
	add(plain, written, "time(6)", "'-838:59:59.999999'", "'838:59:59.999999'", "'00:00:00.000001'", "'-00:00:00.000001'")
	add(year, written, "year", "0", "1901", "2155", "'70'")

	for _, charset := range []string{"utf8mb4", "utf16", "utf32"} {
		add(plain, written, "varchar(300) character set "+charset, "''", "' '", "'a  '", "'🚚'", "'日本語'", "_utf8mb4 X'f48fbfbf'", "_utf8mb4 X'efbbbf61'", "_utf8mb4 X'65cc81'",
			"_utf8mb4 X'01091f7f'", `'"quoted" \ back'`, "CHAR(97, 0 USING utf8mb4)", "REPEAT('ä', 300)", "REPEAT('🚚', 300)")
	}
	add(plain, written, "varchar(9) character set utf8mb3", "'日本語'", "_utf8mb4 X'efbfbf'", "''")
	add(plain, written, "varchar(9) character set ucs2", "'日本語'", "'ü'")
	add(plain, written, "varchar(9) character set latin1", "_latin1 X'80e4ff'", "_latin1 X'818d90'", "'a  '", "_latin1 X'00'")
	add(plain, written, "varchar(9) character set cp1251", "_cp1251 X'c0ff'", "'Ж'")
	add(plain, written, "varchar(9) character set sjis", "_sjis X'83a58ec1'", "'日本'")
	add(plain, written, "varchar(16000) character set utf8mb4", "REPEAT('🚚', 16000)")
	add(plain, written, "char(255) character set utf8mb4", "''", "'a'", "'a  '", "REPEAT('🚚', 255)", "'0'")
	add(plain, written, "tinytext", "''", "REPEAT('t', 255)", "'a '")
	add(plain, written, "text", "''", "REPEAT('t', 65535)", "REPEAT('ä', 513)", "REPEAT('ä', 512)")
	add(plain, written, "longtext", "''", "REPEAT('🚚', 100000)")
	add(plain, written, "enum('', 'red', 'it''s', 'ä')", "'red'", "'it''s'", "'ä'", "''", "'of another list'")
	add(plain, written, "set('a', 'b', 'c')", "''", "'a'", "'c,a'", "7")
	add(plain, written, "set("+members(64)+")", "''", "18446744073709551615")

	add(octets, "HEX(v)", "binary(4)", "''", "X'00'", "X'DEADBEEF'", "'a'", "X'20202020'")
	add(octets, "HEX(v)", "binary(255)", "X'00'", "REPEAT(X'FF', 255)")
	add(octets, "HEX(v)", "varbinary(600)", "''", "X'00'", "X'0000FF'", "X'6120'", "REPEAT(X'FF', 512)", "REPEAT(X'FF', 513)")
	add(octets, "HEX(v)", "tinyblob", "''", "REPEAT(X'00', 255)")
	add(octets, "HEX(v)", "blob", "''", "REPEAT(X'00FF', 32767)")
	add(octets, "HEX(v)", "longblob", "REPEAT(X'FF', 200000)")
	add(octets, "HEX(v)", "point", "ST_GeomFromText('POINT(1.7976931348623157e308 -1e-300)')")
	add(octets, "HEX(v)", "geometry", "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1))')")
	add(document, written, "json", `'{"b" : [1, 2.50, 1e400, -0], "a": "x \" y: z"}'`, `'"\u0000 \ud83d\ude9a"'`, `'{ }'`, `'[]'`, `' "  " '`, "'12345678901234567890.5'", "'null'").TableAlone = true
	add(plain, written, "uuid", "'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'")
	add(plain, written, "inet6", "'::'", "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'")
	return all
}

const (
	written = "CAST(v AS CHAR CHARACTER SET utf8mb4)"
	// exact is a number that the server reads again as the same.
	exact = "IF(CAST(CAST(v AS CHAR) AS DOUBLE) = v, CAST(v AS CHAR), 'the text is not exact')"
)

// members are those of a SET.
func members(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = "'m" + strings.Repeat("x", i) + "'"
	}
	return strings.Join(all, ", ")
}

func plain(text string) sourcetest.Said { return sourcetest.Said{Data: text, Key: text} }

// integer has no zeros in front, whatever ZEROFILL shows.
func integer(text string) sourcetest.Said {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		panic(text)
	}
	return sourcetest.Said{Data: sourcetest.Number(n.String()), Key: n.String()}
}

// year has four digits in data alone.
func year(text string) sourcetest.Said {
	return sourcetest.Said{Data: text, Key: integer(text).Key}
}

func number(text string) sourcetest.Said {
	return sourcetest.Said{Data: sourcetest.Number(text), Key: text}
}

func document(text string) sourcetest.Said {
	return sourcetest.Said{Data: sourcetest.Document(text), Key: text}
}

func octets(text string) sourcetest.Said {
	raw, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return sourcetest.Said{Data: base64.StdEncoding.EncodeToString(raw), Key: strings.ToLower(text)}
}

// isDay reports whether a calendar has the day that a text begins with.
func isDay(text string) bool {
	at, err := time.Parse(time.DateOnly, text[:len(time.DateOnly)])
	return err == nil && at.Year() > 0
}

func day(text string) sourcetest.Said {
	said := plain(text)
	if isDay(text) {
		said.Cursor = text
	}
	return said
}

var reading = regexp.MustCompile(`^(.{10}) (.{8})((\.\d+)?)$`)

func moment(text string) sourcetest.Said {
	said, parts := plain(text), reading.FindStringSubmatch(text)
	if isDay(text) {
		said.Data = parts[1] + "T" + parts[2] + parts[3]
		said.Cursor = parts[1] + " " + parts[2] + parts[3] + ".000000"[len(parts[3]):]
	}
	return said
}

// zoned is for TIMESTAMP, which names UTC.
func zoned(text string) sourcetest.Said {
	said := moment(text)
	if said.Cursor != "" {
		said.Data = said.Data.(string) + "Z" //nolint:forcetypeassert // It is no other.
	}
	return said
}
