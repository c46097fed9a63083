package oracle_test

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/source/sourcetest"
)

// rowsOf returns the rows of a SELECT as the emulator's own functions write them. What
// is proven with it is the way of a value through the bytes of the protocol and the
// driver: the texts are Oracle's only in [TestRealContract].
func (d *database) rowsOf(text string) [][]string {
	d.t.Helper()
	rows, err := d.engine.Query("APP", text)
	if err != nil {
		d.t.Fatalf("%s: %v", text, err)
	}
	all := make([][]string, len(rows))
	for i, row := range rows {
		for _, cell := range row {
			s, _ := cell.(string) // NULL is none.
			all[i] = append(all[i], s)
		}
	}
	return all
}

const (
	dateText  = "TO_CHAR(v, 'SYYYY-MM-DD HH24:MI:SS')"
	stampText = "TO_CHAR(v, 'SYYYY-MM-DD HH24:MI:SS.FF9')"
	zonedText = "TO_CHAR(v, 'SYYYY-MM-DD HH24:MI:SS.FF9TZH:TZM')"
	localText = "TO_CHAR(SYS_EXTRACT_UTC(v), 'SYYYY-MM-DD HH24:MI:SS.FF9')"
)

// edges are the types of Oracle. TestValues has BINARY_FLOAT, whose digits are the driver's.
func edges() []sourcetest.Edge {
	var all []sourcetest.Edge
	add := func(says func(string) sourcetest.Said, text, column string, values ...string) *sourcetest.Edge {
		all = append(all, sourcetest.Edge{Column: column, Values: values, Text: text, Says: says})
		return &all[len(all)-1]
	}
	const nines = "99999999999999999999999999999999999999" // 38 of them

	add(number, "TO_CHAR(v, 'TM9')", "NUMBER", "0", "-1", nines, "-"+nines, "9."+nines[1:]+"E125", "-9."+nines[1:]+"E125", "1E-128", "-1E-130", "1E125",
		"0.5", "-0.5", "0.05", "100", "0.1", "1E40", "1E-30", "9007199254740993", "0.00000000000000000000000000000000000001", "12345678901234567890.1234567890123456789")
	add(number, "TO_CHAR(v, 'TM9')", "NUMBER(38)", nines, "-"+nines, "0")
	add(number, "TO_CHAR(v, 'TM9')", "NUMBER(38,38)", "0."+nines, "-0."+nines, "0.00000000000000000000000000000000000001")
	add(number, "TO_CHAR(v, 'TM9')", "NUMBER(3,-2)", "99900", "-99900", "149", "150")
	add(number, "TO_CHAR(v, 'TM9')", "NUMBER(12,2)", "9999999999.99", "-9999999999.99", "0.01", "1.50")
	add(number, "TO_CHAR(v, 'TM9')", "FLOAT(126)", "0.25", "1E125", "-1E-130", "0")
	add(lost, "TO_CHAR(v, 'TM9')", "NUMBER", "1E-130", "9."+nines[1:]+"E-129")
	add(double, "TO_CHAR(v)", "BINARY_DOUBLE", "TO_BINARY_DOUBLE('1.7976931348623157E308')", "TO_BINARY_DOUBLE('-1.7976931348623157E308')", "TO_BINARY_DOUBLE('2.2250738585072014E-308')",
		"TO_BINARY_DOUBLE('4.9406564584124654E-324')", "TO_BINARY_DOUBLE('0')", "TO_BINARY_DOUBLE('0.1')", "TO_BINARY_DOUBLE('-0.3333333333333333')", "TO_BINARY_DOUBLE('1E22')",
		"TO_BINARY_DOUBLE('9007199254740992')", "TO_BINARY_DOUBLE('NaN')", "TO_BINARY_DOUBLE('Inf')", "TO_BINARY_DOUBLE('-Inf')")

	add(times, dateText, "DATE", "DATE '0001-01-01'", "DATE '9999-12-31'", "TO_DATE('99991231235959', 'YYYYMMDDHH24MISS')", "DATE '2024-02-29'", "DATE '1900-02-28'",
		"DATE '1970-01-01'", "TO_DATE('-4712-01-01', 'SYYYY-MM-DD')", "TO_DATE('-0044-03-15', 'SYYYY-MM-DD')", "TO_DATE('20240331023000', 'YYYYMMDDHH24MISS')").Times = true
	add(times, stampText, "TIMESTAMP(9)", "TIMESTAMP '0001-01-01 00:00:00.0'", "TIMESTAMP '9999-12-31 23:59:59.999999999'", "TIMESTAMP '1969-12-31 23:59:59.999999999'",
		"TIMESTAMP '2024-02-29 00:00:00.000000001'", "TIMESTAMP '2024-10-27 02:30:00.5'", "TO_TIMESTAMP('-4712-01-01', 'SYYYY-MM-DD')").Times = true
	add(times, stampText, "TIMESTAMP(0)", "TIMESTAMP '9999-12-31 23:59:59.0'", "TIMESTAMP '2024-02-29 00:00:00.0'").Times = true
	add(zoned, zonedText, "TIMESTAMP(9) WITH TIME ZONE", "TIMESTAMP '0001-01-02 00:00:00 +14:00'", "TIMESTAMP '9999-12-30 23:59:59.999999999 -12:00'", "TIMESTAMP '2024-03-31 01:30:00.5 -05:30'",
		"TIMESTAMP '2024-02-29 00:00:00.000000001 +00:00'", "TIMESTAMP '2024-07-01 01:30:00 Europe/Berlin'", "TIMESTAMP '2024-07-01 01:30:00 +05:45'").Times = true
	add(local, localText, "TIMESTAMP(9) WITH LOCAL TIME ZONE", "TIMESTAMP '0001-01-03 00:00:00 +00:00'", "TIMESTAMP '9999-12-30 12:00:00.999999999 +00:00'",
		"TIMESTAMP '2024-03-31 01:30:00.5 +02:00'", "TIMESTAMP '2024-10-27 02:30:00 +02:00'").Times = true
	add(plain, "TO_CHAR(v)", "INTERVAL DAY TO SECOND", "NUMTODSINTERVAL(0, 'SECOND')", "NUMTODSINTERVAL(99, 'DAY')", "NUMTODSINTERVAL(-99, 'DAY')", "NUMTODSINTERVAL(-0.000001, 'SECOND')").TableAlone = true // as the emulator sends none

	add(plain, "v", "VARCHAR2(4000)", "''", "' '", "'a  '", "'grün'", "'🚚'", "'日本語'", "CHR(9) || CHR(10) || CHR(31) || CHR(127)", "'a' || CHR(0)", `'"quoted" \ back'`,
		"RPAD('x', 4000, 'x')", "RPAD('x', 1024, 'x')", "RPAD('x', 1025, 'x')", "'null'", "'0001'")
	add(plain, "v", "NVARCHAR2(20)", "N'🚚'", "N'日本語'", "N'a  '")
	add(padded, "v", "CHAR(10)", "'a'", "'a  '", "' '", "'ä'", "'0123456789'")
	add(padded, "v", "NCHAR(4)", "N'ä'", "N'日本語'", "N'    '")
	add(plain, "v", "CLOB", "'a note'", "' '", "TO_CLOB(RPAD('x', 4000, 'x'))", "NULL").Unkeyed = true
	add(octets, "RAWTOHEX(v)", "RAW(2000)", "HEXTORAW('00')", "HEXTORAW('0000FF')", "HEXTORAW('61')", "HEXTORAW(RPAD('00FF', 1024, '00FF'))", "HEXTORAW(RPAD('00FF', 1026, '00FF'))",
		"HEXTORAW(RPAD('FF', 4000, 'FF'))")
	return all
}

func plain(text string) sourcetest.Said {
	if text == "" { // which is NULL
		return sourcetest.Said{}
	}
	return sourcetest.Said{Data: text, Key: text}
}

// padded has blanks at its end that belong to the type.
func padded(text string) sourcetest.Said {
	text = strings.TrimRight(text, " ")
	return sourcetest.Said{Data: text, Key: text}
}

// number is in full in a key.
func number(text string) sourcetest.Said {
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	key := n.FloatString(200)
	return sourcetest.Said{Data: sourcetest.Number(key), Key: strings.TrimSuffix(strings.TrimRight(key, "0"), ".")}
}

// lost are positive numbers below 1E-128, of which go-ora takes the first byte for all of
// zero.
func lost(string) sourcetest.Said { return sourcetest.Said{Data: sourcetest.Number("0"), Key: "0"} }

func double(text string) sourcetest.Said {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	said := sourcetest.Said{Data: sourcetest.Double(n), Key: strconv.FormatFloat(n, 'g', -1, 64)}
	switch {
	case math.IsNaN(n):
		said.Data = "NaN"
	case math.IsInf(n, 1):
		said.Data = "Infinity"
	case math.IsInf(n, -1):
		said.Data = "-Infinity"
	}
	return said
}

func octets(text string) sourcetest.Said {
	raw, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return sourcetest.Said{Data: base64.StdEncoding.EncodeToString(raw), Key: text}
}

var reading = regexp.MustCompile(`^(-?\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d{9})?([+-]\d\d:\d\d)?$`)

// times are readings of a clock. A fraction has no zeros at its end.
func times(text string) sourcetest.Said {
	parts := reading.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		panic(text)
	}
	data := parts[1] + "T" + parts[2] + strings.TrimRight(strings.TrimRight(parts[3], "0"), ".") + parts[4]
	said := sourcetest.Said{Data: data, Key: data}
	if at, err := time.Parse("2006-01-02 15:04:05.999999999", parts[1]+" "+parts[2]+parts[3]); err == nil {
		said.Cursor, said.At = parts[1]+" "+parts[2]+parts[3], at
	}
	return said
}

// zoned is of an instant, which is its cursor.
func zoned(text string) sourcetest.Said {
	at, err := time.Parse("2006-01-02 15:04:05.999999999-07:00", strings.TrimSpace(text))
	if err != nil {
		panic(err)
	}
	said := times(text)
	said.At, said.Cursor = at, at.UTC().Format("2006-01-02 15:04:05.000000000Z")
	return said
}

// local is shown in UTC.
func local(text string) sourcetest.Said {
	said := times(text)
	said.Key += "Z"
	said.Data, said.Cursor = said.Key, said.Cursor+"Z"
	return said
}
