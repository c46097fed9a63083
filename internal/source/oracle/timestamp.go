package oracle

import (
	"bytes"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/source"
)

// timeKind is the type of a timestamp column. Each has cursors of another
// shape, so that one which was written before the column was retyped is refused
// and not misread.
type timeKind struct {
	source.CursorForm
	local bool // the type names no zone, and is shown in that of a session
}

const (
	wallLayout = time.DateTime + ".000000000"
	utcLayout  = wallLayout + "Z"
)

var (
	timeDate = timeKind{CursorForm: source.CursorForm{Layout: time.DateTime}}                     // DATE
	timeWall = timeKind{CursorForm: source.CursorForm{Layout: wallLayout}}                        // TIMESTAMP
	timeUTC  = timeKind{CursorForm: source.CursorForm{Layout: utcLayout, UTC: true}}              // TIMESTAMP WITH TIME ZONE
	timeLTZ  = timeKind{CursorForm: source.CursorForm{Layout: utcLayout, UTC: true}, local: true} // TIMESTAMP WITH LOCAL TIME ZONE
)

// The formats in which times are selected and bound. S is the sign of the year:
// without it, a year before Christ would look like one after. It is a blank for
// the years after.
const (
	dateFormat = "YYYY-MM-DD HH24:MI:SS"
	wallFormat = dateFormat + ".FF9"
	zoneFormat = wallFormat + " TZH:TZM"
)

func timeKindOf(c source.Column) (timeKind, error) {
	switch kindOf(c.Type) {
	case kindDate:
		return timeDate, nil
	case kindTimestamp:
		return timeWall, nil
	case kindTimestampTZ:
		return timeUTC, nil
	case kindTimestampLTZ:
		return timeLTZ, nil
	}
	return timeKind{}, fmt.Errorf("column %s of type %s cannot order the rows: it must be a DATE or a TIMESTAMP, with or without time zone", c.Name, c.Type)
}

// value writes a bound as a value of the column's own type. It converts
// the text, never the column, so that an index on the column serves: a value of
// another type would make Oracle convert every row of the table.
func (k timeKind) value(text string) string {
	switch k {
	case timeDate:
		return fmt.Sprintf("TO_DATE(%s, '%s')", text, dateFormat)
	case timeWall:
		return fmt.Sprintf("TO_TIMESTAMP(%s, '%s')", text, wallFormat)
	case timeLTZ:
		return fmt.Sprintf("CAST(TO_TIMESTAMP_TZ(%s, '%s') AS TIMESTAMP(9) WITH LOCAL TIME ZONE)", text, zoneFormat)
	}
	return fmt.Sprintf("TO_TIMESTAMP_TZ(%s, '%s')", text, zoneFormat)
}

// bind writes a cursor as the text that is bound. It reports false for what is none.
func (k timeKind) bind(cursor string) (text string, ok bool) {
	if !k.Has(cursor) {
		return "", false
	}
	if k.UTC {
		return cursor[:len(wallLayout)] + " +00:00", true
	}
	return cursor, true
}

// appendCursor makes the cursor of a value as it was selected, and returns the
// instant. It reports false outside of the years 1 to 9999.
func (k timeKind) appendCursor(dst, text []byte, loc *time.Location) ([]byte, time.Time, bool) {
	text = bytes.TrimPrefix(text, []byte(" "))
	size := len(wallLayout)
	if k == timeDate {
		size = len(time.DateTime)
	}
	if len(text) < size || !source.IsWallText(text[:size]) { // as a year before Christ is not
		return dst, time.Time{}, false
	}
	var offset time.Duration
	ok := len(text) == size
	switch k {
	case timeUTC:
		offset, ok = zone(text[size:])
		loc = time.UTC
	case timeLTZ: // selected in UTC
		loc = time.UTC
	}
	t := source.ReadWall(text[:size], loc)
	if !ok || t.Year() < 1 {
		return dst, time.Time{}, false
	}
	if k == timeUTC {
		t = t.Add(-offset)
		return t.AppendFormat(dst, utcLayout), t, t.Year() >= 1 && t.Year() <= 9999
	}
	dst = append(dst, text[:size]...)
	if k == timeLTZ {
		dst = append(dst, 'Z')
	}
	return dst, t, true
}

// zone reads " +02:00".
func zone(text []byte) (time.Duration, bool) {
	if len(text) != len(" +00:00") || text[0] != ' ' || text[4] != ':' || text[1] != '+' && text[1] != '-' {
		return 0, false
	}
	for _, i := range []int{2, 3, 5, 6} {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	offset := time.Duration(source.Number(text[2:4]))*time.Hour + time.Duration(source.Number(text[5:7]))*time.Minute
	if text[1] == '-' {
		offset = -offset
	}
	return offset, true
}
