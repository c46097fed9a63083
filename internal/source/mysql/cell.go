package mysql

import (
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/source"
)

// kind says how a value becomes JSON.
type kind uint8

const (
	kindText kind = iota
	kindInteger
	kindNumber // exact, as text
	kindFloat  // as the server prints it, where that is exact; see [floatText]
	kindDouble // as the server prints it
	kindBit
	kindYear
	kindJSON
	kindTimestamp
	kindDatetime
	kindDate
	kindBytes
)

// kindOf knows the names of types in the catalogue.
func kindOf(name string) kind {
	switch strings.TrimSuffix(strings.ToLower(name), " unsigned") {
	case "tinyint", "smallint", "mediumint", "int", "integer", "bigint":
		return kindInteger
	case "decimal":
		return kindNumber
	case "float":
		return kindFloat
	case "double":
		return kindDouble
	case "bit":
		return kindBit
	case "year":
		return kindYear
	case "json":
		return kindJSON
	case "timestamp":
		return kindTimestamp
	case "datetime":
		return kindDatetime
	case "date":
		return kindDate
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector",
		"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
		"geometrycollection", "geomcollection":
		return kindBytes
	}
	return kindText
}

// encodings are what [appendCell] makes of values.
var encodings = map[kind]events.Encoding{
	kindInteger: events.EncodingInteger, kindNumber: events.EncodingNumber, kindFloat: events.EncodingNumber, kindDouble: events.EncodingNumber, kindBit: events.EncodingInteger,
	kindYear: events.EncodingYear, kindJSON: events.EncodingJSON, kindTimestamp: events.EncodingUTC, kindDatetime: events.EncodingTime, kindBytes: events.EncodingBytes,
}

// selected writes what is selected for a column. The driver would make binary
// floats of them, whose digits are not the server's.
func (k kind) selected(qualified string) string {
	switch k {
	case kindFloat:
		return fmt.Sprintf("CAST(CONCAT(%[1]s, ' ', %[1]s + 0e0) AS CHAR(%[2]d))", qualified, floatLength)
	case kindDouble:
		return fmt.Sprintf("CAST(%s AS CHAR(%d))", qualified, doubleLength)
	}
	return qualified
}

// arrivesAs reports whether values of this kind are sent as those of another. What
// was converted is text, as documents are to MariaDB.
func (k kind) arrivesAs(sent kind) bool {
	switch k {
	case kindFloat, kindDouble:
		return sent == kindText
	case kindJSON:
		return sent == kindJSON || sent == kindText
	}
	return sent == k
}

// appendCell appends the i-th value as the value of a JSON member.
func appendCell(b *source.Builder, i int, k kind, v driver.Value) {
	switch v := v.(type) {
	case nil:
		b.Null()
	case int64:
		if k == kindYear {
			b.Data = fmt.Appendf(b.Data, "\"%04d\"", v)
			return
		}
		b.Data = strconv.AppendInt(b.Data, v, 10)
	case uint64:
		b.Data = strconv.AppendUint(b.Data, v, 10)
	case []byte:
		appendBytes(b, i, k, v)
	default:
		b.Null()
		b.Fail(i, "is of a type that the source cannot read")
	}
}

func appendBytes(b *source.Builder, i int, k kind, text []byte) {
	switch k {
	case kindInteger, kindNumber, kindDouble:
		appendNumber(b, i, text)
	case kindFloat:
		appendNumber(b, i, floatText(text))
	case kindBit:
		b.Data = strconv.AppendUint(b.Data, bits(text), 10)
	case kindJSON:
		appendJSON(b, i, text)
	case kindTimestamp, kindDatetime:
		appendTime(b, i, k, text)
	case kindBytes:
		b.Bytes(text)
	default:
		b.TextBytes(i, text)
	}
}

// bits is the number of a BIT, which arrives as up to eight bytes.
func bits(raw []byte) uint64 {
	var n uint64
	for _, c := range raw {
		n = n<<8 | uint64(c)
	}
	return n
}

// appendNumber appends a number without the zeros in front that ZEROFILL asks
// for and JSON does not allow. What is no number, after all, is text.
func appendNumber(b *source.Builder, i int, text []byte) {
	digits := text
	for len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		digits = digits[1:]
	}
	if len(digits) == 0 || digits[0] != '-' && (digits[0] < '0' || digits[0] > '9') || !json.Valid(digits) {
		b.TextBytes(i, text)
		return
	}
	b.Data = append(b.Data, digits...)
}

// appendJSON appends a document. MariaDB keeps it as text, which a server that
// was told not to check may have let in whatever it is.
func appendJSON(b *source.Builder, i int, text []byte) {
	if !json.Valid(text) || !utf8.Valid(text) {
		b.Null()
		b.Fail(i, "is not valid JSON")
		return
	}
	b.JSON(i, text)
}

// appendTime changes "2026-03-29 01:30:00.5" to "2026-03-29T01:30:00.5", with a
// Z for a TIMESTAMP, and leaves zero dates as they are.
func appendTime(b *source.Builder, i int, k kind, text []byte) {
	const date = len(time.DateOnly)
	if len(text) < len(time.DateTime) || !validTime(text[:len(time.DateTime)]) {
		b.TextBytes(i, text)
		return
	}
	b.Data = append(append(b.Data, '"'), text[:date]...)
	b.Data = append(append(b.Data, 'T'), text[date+1:]...)
	if k == kindTimestamp {
		b.Data = append(b.Data, 'Z')
	}
	b.Data = append(b.Data, '"')
}

// appendKey appends a value as part of a key: bytes in hexadecimal digits, BIT
// as its number, everything else as the server words it. nil is NULL.
func appendKey(buffer []byte, k kind, v driver.Value) []byte {
	raw, isBytes := v.([]byte)
	switch {
	case isBytes && k == kindBytes:
		return hex.AppendEncode(buffer, raw)
	case isBytes && k == kindBit:
		return strconv.AppendUint(buffer, bits(raw), 10)
	case isBytes && k == kindFloat:
		return floatText(raw)
	}
	return text(buffer, v)
}
