package oracle

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/observerd/observerd/internal/source"
)

// selected writes what is selected for a column, of which qualified is the name
// behind its alias. Nothing is left to the session's formats or to the driver's
// idea of a type.
func selected(k kind, qualified string) string {
	switch k {
	case kindDate:
		return "TO_CHAR(" + qualified + ", 'S" + dateFormat + "')"
	case kindTimestamp:
		return "TO_CHAR(" + qualified + ", 'S" + wallFormat + "')"
	case kindTimestampTZ:
		return "TO_CHAR(" + qualified + ", 'S" + zoneFormat + "')"
	case kindTimestampLTZ:
		return "TO_CHAR(SYS_EXTRACT_UTC(" + qualified + "), 'S" + wallFormat + "')"
	case kindInterval, kindBool:
		return "TO_CHAR(" + qualified + ")"
	case kindRowID:
		return "ROWIDTOCHAR(" + qualified + ")"
	case kindURowID:
		return "CAST(" + qualified + " AS VARCHAR2(4000))"
	case kindJSON:
		return "JSON_SERIALIZE(" + qualified + " RETURNING CLOB ERROR ON ERROR)"
	}
	return qualified
}

// lengthOf writes the length of a large object; it is empty for another kind.
func lengthOf(k kind, qualified string) string {
	if k.items() == 1 {
		return ""
	}
	return "DBMS_LOB.GETLENGTH(" + selected(k, qualified) + ")"
}

// Size implements [source.Dialect] for large objects. The length is in characters.
func (dialect) Size(c source.Column, qualified string, most int) (fits, length string) {
	if length = lengthOf(kindOf(c.Type), qualified); length != "" {
		fits = fmt.Sprintf("%s <= %d", length, most)
	}
	return fits, length
}

// Item implements [source.Dialect]. A large object brings its length along as
// an item of its own, which tells an empty one from one that is left behind. n makes
// its name, for within a subquery each item needs one of its own.
func (dialect) Item(n int, c source.Column, value string) string {
	qualified := "q." + source.Quote(c.Name)
	if value == qualified {
		return value
	}
	value += " AS " + source.Quote(c.Name)
	if length := lengthOf(kindOf(c.Type), qualified); length != "" {
		value = fmt.Sprintf(`%s AS "length %d", %s`, length, n+1, value)
	}
	return value
}

// items is how many items [dialect.Item] writes for a kind; the value is the last.
func (k kind) items() int {
	if k == kindCLOB || k == kindJSON {
		return 2
	}
	return 1
}

// appendCell appends a value, as it was selected, as the i-th member's.
func appendCell(b *source.Builder, i int, k kind, text []byte) {
	if text == nil {
		b.Null()
		return
	}
	switch k {
	case kindPadded:
		b.TextBytes(i, bytes.TrimRight(text, " "))
	case kindNumber:
		b.Number(i, text)
	case kindDouble:
		appendDouble(b, i, text)
	case kindBool:
		appendBool(b, i, text)
	case kindDate, kindTimestamp, kindTimestampTZ, kindTimestampLTZ:
		appendTime(b, k, text)
	case kindRaw:
		b.Bytes(text)
	case kindJSON:
		b.JSON(i, text)
	default:
		b.TextBytes(i, text)
	}
}

// appendLOB is appendCell for a kind whose length came with it. A value that
// was left behind has a length all the same; an empty one is none of these.
func appendLOB(b *source.Builder, i int, k kind, length, text []byte) {
	if text == nil && len(length) > 0 {
		if string(length) == "0" {
			b.Text(i, "")
			return
		}
		b.Leave()
		return
	}
	appendCell(b, i, k, text)
}

func appendBool(b *source.Builder, i int, text []byte) {
	switch string(text) {
	case "TRUE":
		b.Data = append(b.Data, "true"...)
	case "FALSE":
		b.Data = append(b.Data, "false"...)
	default:
		b.TextBytes(i, text)
	}
}

func appendDouble(b *source.Builder, i int, text []byte) {
	switch string(text) {
	case "+Inf", "Inf":
		b.Data = append(b.Data, `"Infinity"`...)
	case "-Inf":
		b.Data = append(b.Data, `"-Infinity"`...)
	default:
		b.Number(i, text)
	}
}

// appendTime changes " 2026-03-29 01:30:00.500000000 +02:00" to
// "2026-03-29T01:30:00.5+02:00".
func appendTime(b *source.Builder, k kind, text []byte) {
	b.Data = append(b.Data, '"')
	b.Data = compactTime(b.Data, k, text)
	b.Data = append(b.Data, '"')
}

func compactTime(dst []byte, k kind, text []byte) []byte {
	text = bytes.TrimPrefix(text, []byte(" "))
	date, rest, _ := bytes.Cut(text, []byte(" "))
	clock, zone, _ := bytes.Cut(rest, []byte(" "))
	if bytes.IndexByte(clock, '.') >= 0 {
		clock = bytes.TrimRight(bytes.TrimRight(clock, "0"), ".")
	}
	dst = append(append(append(dst, date...), 'T'), clock...)
	if k == kindTimestampLTZ {
		return append(dst, 'Z')
	}
	return append(dst, zone...)
}

// keyText is a value as part of a key: the text that a person would look for in
// the database, which for bytes is hexadecimal. nil is NULL.
func keyText(k kind, text []byte) []byte {
	if text == nil {
		return nil
	}
	switch k {
	case kindPadded:
		return bytes.TrimRight(text, " ")
	case kindRaw:
		return bytes.ToUpper(hex.AppendEncode(nil, text))
	case kindDate, kindTimestamp, kindTimestampTZ, kindTimestampLTZ:
		return compactTime(nil, k, text)
	}
	return text
}
