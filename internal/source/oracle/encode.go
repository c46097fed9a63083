package oracle

import (
	"database/sql"
	"time"

	"github.com/observerd/observerd/internal/source"
)

// cells are the values of a row, as they were selected.
type cells struct {
	plan     plan
	location *time.Location
	values   []sql.RawBytes
	cursor   []byte
}

// Left implements [source.Cells]. The length of a large object says whether that is
// left behind, see appendLOB.
func (c *cells) Left() source.Left { return 0 }

// KeyText implements [source.Cells]. A large object is no part of a key, but may be hashed:
// an empty one arrives as NULL with a length.
func (c *cells) KeyText(i int) []byte {
	if at := c.plan.at[i]; c.plan.kinds[i].items() > 1 && c.values[at] == nil && string(c.values[at-1]) == "0" {
		return []byte{}
	}
	return keyText(c.plan.kinds[i], c.values[c.plan.at[i]])
}

// Append implements [source.Cells].
func (c *cells) Append(b *source.Builder, i int) {
	k, at := c.plan.kinds[i], c.plan.at[i]
	if k.items() > 1 {
		appendLOB(b, i, k, c.values[at-1], c.values[at])
		return
	}
	appendCell(b, i, k, c.values[at])
}

// Cursor implements [source.Cells].
func (c *cells) Cursor(i int) ([]byte, time.Time, string) {
	value := c.values[c.plan.at[i]]
	if value == nil {
		return nil, time.Time{}, ""
	}
	cursor, at, ok := c.plan.time.appendCursor(c.cursor[:0], value, c.location)
	if !ok {
		return nil, time.Time{}, "is outside of the years 1 to 9999"
	}
	c.cursor = cursor
	return cursor, at, ""
}
