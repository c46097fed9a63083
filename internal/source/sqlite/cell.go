package sqlite

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/observerd/observerd/internal/jsontext"
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
		b.Bytes(v)
	default:
		b.Null()
		b.Fail(i, "is of a type that SQLite does not have")
	}
}

// appendReal writes a number as JSON, which has no infinity.
func appendReal(b *source.Builder, v float64) {
	switch {
	case math.IsInf(v, 1):
		b.Data = append(b.Data, `"Infinity"`...)
	case math.IsInf(v, -1):
		b.Data = append(b.Data, `"-Infinity"`...)
	default:
		b.Data = jsontext.AppendFloat(b.Data, v)
	}
}

// KeyText implements [source.Cells]. In a column without a type, values of two classes have
// two texts: a BLOB is marked, and so is a text that a number, or a mark, could be taken for.
func (c *cells) KeyText(i int) []byte {
	value := c.values[i]
	text := c.keyText(value)
	column := c.selection.Columns[i]
	if column.KeyRule != observer.KeyClass || len(text) == 0 {
		return text
	}
	mark := ""
	switch value.(type) {
	case []byte:
		mark = observer.BlobClass
	case string:
		_, err := strconv.ParseFloat(string(text), 64)
		if err == nil || errors.Is(err, strconv.ErrRange) || bytes.HasPrefix(text, []byte(observer.TextClass)) || bytes.HasPrefix(text, []byte(observer.BlobClass)) {
			mark = observer.TextClass
		}
	}
	c.scratch = slices.Insert(text, 0, []byte(mark)...)
	return c.scratch
}

// keyText returns a part of the key as text, a BLOB in hexadecimal; nil for
// NULL. It is valid until the next call.
func (c *cells) keyText(value any) []byte {
	c.scratch = c.scratch[:0]
	switch v := value.(type) {
	case nil:
		return nil
	case int64:
		c.scratch = strconv.AppendInt(c.scratch, v, 10)
	case float64:
		c.scratch = strconv.AppendFloat(c.scratch, v, 'f', -1, 64)
	case string:
		c.scratch = append(c.scratch, v...)
	case []byte:
		c.scratch = hex.AppendEncode(c.scratch, v)
	}
	if c.scratch == nil { // An empty text is not NULL.
		c.scratch = []byte{}
	}
	return c.scratch
}
