package sqlite

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/observerd/observerd/internal/observer"
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

// What a text, and a BLOB, begins with in the key, where a number may stand as well.
const (
	textClass = "text:"
	blobClass = "blob:"
)

// keyPart returns the value of a column as part of the key, see [encoder.keyText]. In
// the normal form of a column without a type, values of two classes have two texts: a
// BLOB is marked, and so is a text that a number, or a mark, could be taken for.
func (e *encoder) keyPart(i int, value any) []byte {
	text := e.keyText(value)
	if !e.normal || e.selection.Columns[i].KeyRule != observer.KeyClass || len(text) == 0 {
		return text
	}
	mark := ""
	switch value.(type) {
	case []byte:
		mark = blobClass
	case string:
		_, err := strconv.ParseFloat(string(text), 64)
		if err == nil || errors.Is(err, strconv.ErrRange) || bytes.HasPrefix(text, []byte(textClass)) || bytes.HasPrefix(text, []byte(blobClass)) {
			mark = textClass
		}
	}
	e.scratch = slices.Insert(text, 0, []byte(mark)...)
	return e.scratch
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
