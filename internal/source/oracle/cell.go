package oracle

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/observerd/observerd/internal/source"
)

// selected writes what is selected for a column, of which qualified is the name
// behind its alias. Nothing is left to the session's formats or to the driver's
// idea of a type. A large object brings its length along as a second item, and
// comes itself only where it is no longer than a row may be. n makes the name of
// the length, for within a subquery each item needs one of its own.
func selected(k kind, qualified string, maxLength, n int) string {
	as := " AS " + strings.TrimPrefix(qualified, "q.")
	switch k {
	case kindDate:
		return "TO_CHAR(" + qualified + ", 'S" + dateFormat + "')" + as
	case kindTimestamp:
		return "TO_CHAR(" + qualified + ", 'S" + wallFormat + "')" + as
	case kindTimestampTZ:
		return "TO_CHAR(" + qualified + ", 'S" + zoneFormat + "')" + as
	case kindTimestampLTZ:
		return "TO_CHAR(SYS_EXTRACT_UTC(" + qualified + "), 'S" + wallFormat + "')" + as
	case kindInterval, kindBool:
		return "TO_CHAR(" + qualified + ")" + as
	case kindRowID:
		return "ROWIDTOCHAR(" + qualified + ")" + as
	case kindURowID:
		return "CAST(" + qualified + " AS VARCHAR2(4000))" + as
	case kindCLOB:
		return bounded(qualified, maxLength, n) + as
	case kindJSON:
		return bounded("JSON_SERIALIZE("+qualified+" RETURNING CLOB ERROR ON ERROR)", maxLength, n) + as
	}
	return qualified
}

func bounded(lob string, maxLength, n int) string {
	length := "DBMS_LOB.GETLENGTH(" + lob + ")"
	return fmt.Sprintf(`%s AS "length %d", CASE WHEN %s <= %d THEN %s END`, length, n, length, maxLength, lob)
}

// items is how many items [selected] writes for a kind; the value is the last.
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
		appendNumber(b, i, text)
	case kindDouble:
		appendDouble(b, i, text)
	case kindBool:
		appendBool(b, i, text)
	case kindDate, kindTimestamp, kindTimestampTZ, kindTimestampLTZ:
		appendTime(b, k, text)
	case kindRaw:
		b.Data = append(b.Data, '"')
		b.Data = base64.StdEncoding.AppendEncode(b.Data, text)
		b.Data = append(b.Data, '"')
	case kindJSON:
		appendJSON(b, i, text)
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
		b.Null()
		b.Fail(i, "is longer than a row may be")
		return
	}
	appendCell(b, i, k, text)
}

// appendNumber appends a decimal number. Drivers differ over the zero before
// the point, and JSON wants it. What is no number is text: infinity, and what
// drivers make of bytes that no database should have written.
func appendNumber(b *source.Builder, i int, text []byte) {
	if !isNumber(text) {
		b.TextBytes(i, text)
		return
	}
	if text[0] == '-' {
		b.Data = append(b.Data, '-')
		text = text[1:]
	}
	if text[0] == '.' {
		b.Data = append(b.Data, '0')
	}
	b.Data = append(b.Data, text...)
}

// isNumber tells whether a text is a number as JSON has them, but for the zero
// before the point.
func isNumber(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("-"))
	mantissa, exponent, scientific := bytes.Cut(text, []byte("e"))
	whole, fraction, pointed := bytes.Cut(mantissa, []byte("."))
	if scientific && !isDigits(bytes.TrimLeft(exponent, "+-")) {
		return false
	}
	switch {
	case len(whole) > 1 && whole[0] == '0', pointed && !isDigits(fraction):
		return false
	case pointed && len(whole) == 0:
		return true
	}
	return isDigits(whole)
}

func isDigits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
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
		appendNumber(b, i, text)
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

func appendJSON(b *source.Builder, i int, text []byte) {
	size := len(b.Data)
	var ok bool
	if b.Data, ok = source.AppendCompact(b.Data, text); !ok {
		b.Data = b.Data[:size]
		b.Null()
		b.Fail(i, "is not valid text (UTF-8 without NUL)")
	}
}

// keyText is a value as part of a key: the text that a person would look for in
// the database, which for bytes is hexadecimal. nil is NULL.
func keyText(dst []byte, k kind, text []byte) []byte {
	if text == nil {
		return nil
	}
	switch k {
	case kindPadded:
		return bytes.TrimRight(text, " ")
	case kindRaw:
		return bytes.ToUpper(hex.AppendEncode(dst, text))
	case kindDate, kindTimestamp, kindTimestampTZ, kindTimestampLTZ:
		return compactTime(dst, k, text)
	}
	return text
}
