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
		return append(dst, text...), validTime(text, len(dateLayout))
	}
	if k == timeUTC {
		zone := len(text) - len("+00")
		if zone < 0 || string(text[zone:]) != "+00" {
			return dst, false
		}
		text = text[:zone]
	}
	const seconds = len("2006-01-02 15:04:05")
	if len(text) < seconds || !validTime(text[:seconds], seconds) {
		return dst, false
	}
	fraction := text[seconds:]
	if len(fraction) == 0 {
		fraction = []byte(".")
	}
	if fraction[0] != '.' || len(fraction) > len(".000000") || !digits(fraction[1:]) {
		return dst, false
	}
	dst = append(append(dst, text[:seconds]...), fraction...)
	return append(dst, "000000"[len(fraction)-1:]...), true
}

// validTime checks the shape of a date or of a date with a time.
func validTime(text []byte, size int) bool {
	if len(text) != size {
		return false
	}
	for i, c := range text {
		want := "0000-00-00 00:00:00"[i]
		if want == '0' && (c < '0' || c > '9') || want != '0' && c != want {
			return false
		}
	}
	return true
}

func digits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
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
	year, month, day := number(cursor[0:4]), number(cursor[5:7]), number(cursor[8:10])
	if k == timeDate {
		return time.Date(year, time.Month(month), day, 0, 0, 0, 0, loc)
	}
	return time.Date(year, time.Month(month), day, number(cursor[11:13]), number(cursor[14:16]),
		number(cursor[17:19]), number(cursor[20:26])*1000, loc)
}

func number(digits []byte) int {
	n := 0
	for _, c := range digits {
		n = n*10 + int(c-'0')
	}
	return n
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
