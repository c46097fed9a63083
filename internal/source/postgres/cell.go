package postgres

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/source"
)

// kind says how the text of a value becomes JSON.
type kind uint8

const (
	kindText kind = iota
	kindInteger
	kindNumber // which may be NaN or Infinity
	kindBool
	kindJSON
	kindTimestamptz
	kindTimestamp
	kindDate
	kindBytes
)

func kindOf(oid uint32) kind {
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID:
		return kindInteger
	case pgtype.NumericOID, pgtype.Float4OID, pgtype.Float8OID:
		return kindNumber
	case pgtype.BoolOID:
		return kindBool
	case pgtype.JSONOID, pgtype.JSONBOID:
		return kindJSON
	case pgtype.TimestamptzOID:
		return kindTimestamptz
	case pgtype.TimestampOID:
		return kindTimestamp
	case pgtype.DateOID:
		return kindDate
	case pgtype.ByteaOID:
		return kindBytes
	}
	return kindText
}

// encodings are what [appendCell] makes of values.
var encodings = map[kind]events.Encoding{
	kindInteger: events.EncodingInteger, kindNumber: events.EncodingNumber, kindBool: events.EncodingBoolean, kindJSON: events.EncodingJSON,
	kindTimestamptz: events.EncodingTime, kindTimestamp: events.EncodingTime, kindBytes: events.EncodingBytes,
}

// appendCell appends the i-th value as the value of a JSON member.
func appendCell(b *source.Builder, i int, k kind, text []byte) {
	if text == nil {
		b.Null()
		return
	}
	switch k {
	case kindInteger, kindNumber:
		b.Number(i, text)
	case kindBool:
		b.Data = strconv.AppendBool(b.Data, string(text) == "t")
	case kindJSON:
		b.JSON(i, text)
	case kindTimestamptz, kindTimestamp:
		appendTime(b, i, text)
	case kindBytes:
		appendBytes(b, i, text)
	default:
		b.TextBytes(i, text)
	}
}

// appendTime changes "2026-03-29 01:30:00.5+00" to "2026-03-29T01:30:00.5Z" and
// leaves infinity and the years BC as they are.
func appendTime(b *source.Builder, i int, text []byte) {
	const date = len(time.DateOnly)
	if len(text) <= date || text[date] != ' ' || text[len(text)-1] == 'C' {
		b.TextBytes(i, text)
		return
	}
	b.Data = append(append(b.Data, '"'), text[:date]...)
	b.Data = append(b.Data, 'T')
	clock := text[date+1:]
	if zone := len(clock) - len("+00"); zone > 0 && string(clock[zone:]) == "+00" {
		b.Data = append(append(b.Data, clock[:zone]...), 'Z')
	} else {
		b.Data = append(b.Data, clock...)
	}
	b.Data = append(b.Data, '"')
}

// appendBytes changes PostgreSQL's \x… to base64.
func appendBytes(b *source.Builder, i int, text []byte) {
	if len(text) < 2 || text[0] != '\\' || text[1] != 'x' {
		b.Null()
		b.Fail(i, "is not in the form in which the session asked for bytes")
		return
	}
	raw := make([]byte, hex.DecodedLen(len(text)-2))
	if _, err := hex.Decode(raw, text[2:]); err != nil {
		b.Null()
		b.Fail(i, "is not readable as bytes")
		return
	}
	b.Bytes(raw)
}
