package postgres

import (
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/source"
)

// timeKind is the type of a timestamp column.
type timeKind int

const (
	timeUTC  timeKind = iota + 1 // timestamp with time zone
	timeWall                     // timestamp without time zone
	timeDate                     // date
)

const (
	cursorLayout = "2006-01-02 15:04:05.000000"
	dateLayout   = "2006-01-02"
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
	return 0, fmt.Errorf("column %s cannot order the rows: it must be a timestamp, with or without time zone, or a date", c.Name)
}

// appendCursor makes the cursor of the text in which PostgreSQL sends a value.
// It reports false for what has no fixed width: infinity, years before 1 and
// after 9999.
func (k timeKind) appendCursor(dst, text []byte) ([]byte, bool) {
	if k == timeDate {
		return append(dst, text...), len(text) == len(dateLayout) && source.IsWallText(text)
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

// parse returns the instant of a cursor. nil as location means UTC.
func (k timeKind) parse(cursor string, loc *time.Location) (time.Time, bool) {
	if loc == nil || k == timeUTC {
		loc = time.UTC
	}
	size := len(cursorLayout)
	if k == timeDate {
		size = len(dateLayout)
	}
	if len(cursor) != size {
		return time.Time{}, false
	}
	layout := cursorLayout[:size]
	t, err := time.ParseInLocation(layout, cursor, loc)
	return t, err == nil
}

// instant is parse for a cursor whose shape was checked, without the cost of
// a layout in the loop over all rows.
func (k timeKind) instant(cursor []byte, loc *time.Location) time.Time {
	if k == timeUTC {
		loc = time.UTC
	}
	return source.ReadWall(cursor, loc)
}

// literal writes a cursor as a parameter of its column's type.
func (k timeKind) literal(cursor string) string {
	if k == timeUTC {
		return cursor + "+00"
	}
	return cursor
}

// horizon writes an instant as a cursor that no later row will be below.
func (k timeKind) horizon(t time.Time, loc *time.Location) string {
	switch k {
	case timeUTC:
		return t.UTC().Format(cursorLayout)
	case timeDate:
		return source.EarliestWall(t, loc).Format(dateLayout)
	}
	return source.EarliestWall(t, loc).Format(cursorLayout)
}
