package postgres

import (
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/source"
)

// timeKind is the type of a timestamp column.
type timeKind struct{ source.CursorForm }

var (
	timeUTC  = timeKind{source.CursorForm{Layout: source.MicroLayout, UTC: true}} // timestamp with time zone
	timeWall = timeKind{source.CursorForm{Layout: source.MicroLayout}}            // timestamp without time zone
	timeDate = timeKind{source.CursorForm{Layout: time.DateOnly}}                 // date
)

func timeKindOf(c source.Column, k kind) (timeKind, error) {
	switch k {
	case kindTimestamptz:
		return timeUTC, nil
	case kindTimestamp:
		return timeWall, nil
	case kindDate:
		return timeDate, nil
	}
	return timeKind{}, fmt.Errorf("column %s cannot order the rows: it must be a timestamp, with or without time zone, or a date", c.Name)
}

// appendCursor makes the cursor of the text in which PostgreSQL sends a value.
// It reports false for what has no fixed width: infinity, years before 1 and
// after 9999.
func (k timeKind) appendCursor(dst, text []byte) ([]byte, bool) {
	if k == timeDate {
		return append(dst, text...), len(text) == len(time.DateOnly) && source.IsWallText(text)
	}
	if k == timeUTC {
		zone := len(text) - len("+00")
		if zone < 0 || string(text[zone:]) != "+00" {
			return dst, false
		}
		text = text[:zone]
	}
	return source.AppendMicros(dst, text)
}

// param writes a cursor as a parameter of its column's type. It reports false for what is
// none.
func (k timeKind) param(cursor string) (text []byte, ok bool) {
	ok = k.Has(cursor)
	if k == timeUTC {
		cursor += "+00"
	}
	return []byte(cursor), ok
}
