package sqlite

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/observerd/observerd/internal/source"
)

// appendCell appends the i-th value as the value of a JSON member: numbers as
// numbers, text as it is stored, a BLOB as base64.
func appendCell(b *source.Builder, i int, value any) {
	switch v := value.(type) {
	case nil:
		b.Null()
	case int64:
		b.Data = strconv.AppendInt(b.Data, v, 10)
	case float64:
		appendReal(b, v)
	case string:
		b.Text(i, v)
	case []byte:
		b.Data = append(b.Data, '"')
		b.Data = base64.StdEncoding.AppendEncode(b.Data, v)
		b.Data = append(b.Data, '"')
	default:
		b.Null()
		b.Fail(i, "is of a type that SQLite does not have")
	}
}

// appendReal writes the shortest text that means the same number, without an
// exponent where people would not use one. JSON has no infinity.
func appendReal(b *source.Builder, v float64) {
	size := math.Abs(v)
	switch {
	case math.IsInf(v, 1):
		b.Data = append(b.Data, `"Infinity"`...)
	case math.IsInf(v, -1):
		b.Data = append(b.Data, `"-Infinity"`...)
	case size != 0 && (size < 1e-6 || size >= 1e21):
		b.Data = strconv.AppendFloat(b.Data, v, 'e', -1, 64)
	default:
		b.Data = strconv.AppendFloat(b.Data, v, 'f', -1, 64)
	}
}

// keyText returns a part of the key as text, a BLOB in hexadecimal; nil for
// NULL. It is valid until the next call.
func (e *encoder) keyText(value any) []byte {
	e.scratch = e.scratch[:0]
	switch v := value.(type) {
	case nil:
		return nil
	case int64:
		e.scratch = strconv.AppendInt(e.scratch, v, 10)
	case float64:
		e.scratch = strconv.AppendFloat(e.scratch, v, 'f', -1, 64)
	case string:
		e.scratch = append(e.scratch, v...)
	case []byte:
		e.scratch = hex.AppendEncode(e.scratch, v)
	}
	if e.scratch == nil { // An empty text is not NULL.
		e.scratch = []byte{}
	}
	return e.scratch
}
