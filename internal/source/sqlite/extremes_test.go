package sqlite_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/source/sourcetest"
)

// classed is the class of a value, its exact text, and its place in time where it has
// one. Text is classed by its bytes, as quote() ends at a NUL.
const classed = "typeof(v) || ' ' || CASE WHEN typeof(v) IN ('text', 'blob') THEN hex(v) ELSE quote(v) END"

// instant follows docs/sources.md, in the precision of SQLite, for numbers that are
// timestamps. Texts are what SQLite says of them.
const instant = `CAST(round(1000 * CASE
	WHEN typeof(v) = 'text' THEN unixepoch(v, 'subsec') * 1000
	WHEN v >= 1721059.5 AND v < 5373484.5 THEN (v - 2440587.5) * 86400000
	WHEN v < 253402300800 THEN v * 1000
	WHEN v < 253402300800000 THEN v
	WHEN v < 253402300800000000 THEN v / 1000
	ELSE v / 1000000 END) AS INTEGER)`

// edges are the affinities of SQLite, in which every column may hold values of each
// class.
func edges() []sourcetest.Edge {
	mixed := []string{
		"0", "-1", "9223372036854775807", "-9223372036854775808", "9007199254740993", "9007199254740992.0", "0.0", "1.0", "0.1", "0.1 + 0.2", "-2.5",
		"1.7976931348623157e308", "-1.7976931348623157e308", "2.2250738585072014e-308", "5e-324", "-5e-324", "1e21", "1e20", "1e-6", "1e-7", "123456789012345680000.0",
		"9e999", "-9e999", "''", "' '", "'a  '", "'7'", "'007'", "'1e400'", "'0x10'", "'Infinity'", "'true'", "'null'", "'[1]'", "'ShipInf'", "'it''s'", "char(1, 9, 10, 31, 34, 92, 127)", "char(128666)", "char(1114111)",
		"char(65279, 97, 8232)", "'日本語'", "char(97, 0, 98)", "CAST(x'ff' AS TEXT)", "CAST(x'eda080' AS TEXT)", "replace(hex(zeroblob(512)), '00', 'ä')",
		"replace(hex(zeroblob(513)), '00', 'ä')", "replace(hex(zeroblob(25000)), '00', char(128666))", "x''", "x'00'", "x'0061ff'", "zeroblob(512)", "zeroblob(513)", "randomblob(20000)",
	}
	var all []sourcetest.Edge
	for _, column := range []string{
		"INT", "BIGINT UNSIGNED", "TEXT", "VARCHAR(3)", "CHAR(3)", "CLOB", "REAL", "DOUBLE PRECISION", "FLOAT", "NUMERIC", "DECIMAL(10,2)", "BOOLEAN", "BLOB", "",
	} {
		all = append(all, sourcetest.Edge{Column: column, Values: mixed, Text: classed, Says: said})
	}
	// SQLite has a zero with a sign, and does not write it: its key is another than zero's.
	all = append(all, sourcetest.Edge{Column: "BLOB", Values: []string{"-0.0"}, Text: classed, Says: said, Unkeyed: true})
	for _, e := range []struct{ column, values string }{
		{"INTEGER", "-62135596801,-62135596800,-1,0,1,1721059,1721060,5373484,5373485,1714557600,253402300799,253402300800,253402300799999,253402300800000," +
			"253402300799999999,253402300800000000,9223372036854775807,-9223372036854775808"},
		{"REAL", "-62135596800.5,-62135596800.0,-0.5,0.25,1721059.25,1721059.5,2440587.5,2460492.9166666665,5373484.25,5373484.5,1714557600.25,253402300799.75,9e999,-9e999"},
		{"NUMERIC", "1714557600,1714557600.125,9e999"},
		{"TEXT", "'0000-01-01','0001-01-01','0001-01-01 00:00:00','1582-10-10','1970-01-01T00:00:00Z','1969-12-31 23:59:59.999','2024-02-29','2024-02-31 10:00:00','2024-07-01 10:00'," +
			"'2024-07-01T05:00:00.123-05:00','2024-07-01 10:00:00.123456','2024-10-27 02:30:00','9999-12-31','9999-12-31 23:59:59.999','9999-12-31T23:59:59.999+14:00'," +
			"'','10000-01-01','-001-01-01','2024-00-01','2024-13-01','2024-01-32','2024-01-01 24:00:00','2016-12-31 23:59:60','20240101','now'"},
		{"DATETIME", "'2024-02-29 23:59:59.999',1714557600,1714557600000,1714557600000000,1714557600000000000,2460492.5,x'00'"},
	} {
		values := strings.Split(e.values, ",")
		all = append(all, sourcetest.Edge{Column: e.column, Values: values, Text: classed, Says: dated, Times: true, Micros: instant, Within: time.Millisecond})
	}
	return all
}

// classless are bytes, and texts that look like numbers, unless the key marks them.
func classless(column string, s sourcetest.Said) bool {
	text, ok := s.Data.(string)
	return ok && column != "BLOB" && column != "" && text != s.Key && !strings.HasSuffix(s.Key, "Inf")
}

func said(text string) sourcetest.Said {
	class, value, _ := strings.Cut(text, " ")
	switch class {
	case "integer":
		return sourcetest.Said{Data: sourcetest.Number(value), Key: value}
	case "real":
		return floating(value)
	}
	raw, err := hex.DecodeString(value)
	if err != nil {
		panic(err)
	}
	if class == "blob" {
		return sourcetest.Said{Data: base64.StdEncoding.EncodeToString(raw), Key: hex.EncodeToString(raw)}
	}
	return sourcetest.Said{Data: string(raw), Key: string(raw)}
}

func floating(text string) sourcetest.Said {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		panic(err)
	}
	switch {
	case math.IsInf(n, 1):
		return sourcetest.Said{Data: "Infinity", Key: "+Inf"}
	case math.IsInf(n, -1):
		return sourcetest.Said{Data: "-Infinity", Key: "-Inf"}
	}
	return sourcetest.Said{Data: sourcetest.Double(n), Key: strconv.FormatFloat(n, 'f', -1, 64)}
}

// iso are the texts that are timestamps; a day that its month does not have is one of
// the next month.
var iso = regexp.MustCompile(`^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])([ T]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$`)

// dated is a value that may be a timestamp: its cursor is its key.
func dated(text string) sourcetest.Said {
	s := said(text)
	n, err := strconv.ParseFloat(s.Key, 64)
	isTime := err == nil && n >= -62135596800 && !math.IsInf(n, 0)
	if t, ok := s.Data.(string); ok {
		isTime = iso.MatchString(t)
	}
	if isTime {
		s.Cursor = s.Key
	}
	return s
}
