package mysql

import (
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/source"
)

// timeKind is the type of a timestamp column.
type timeKind struct{ source.CursorForm }

var (
	timeUTC  = timeKind{source.CursorForm{Layout: source.MicroLayout, UTC: true}} // TIMESTAMP
	timeWall = timeKind{source.CursorForm{Layout: source.MicroLayout}}            // DATETIME
	timeDate = timeKind{source.CursorForm{Layout: time.DateOnly}}                 // DATE
)

func timeKindOf(c source.Column, k kind) (timeKind, error) {
	switch k {
	case kindTimestamp:
		return timeUTC, nil
	case kindDatetime:
		return timeWall, nil
	case kindDate:
		return timeDate, nil
	}
	return timeKind{}, fmt.Errorf("column %s cannot order the rows: it must be of type TIMESTAMP, DATETIME or DATE", c.Name)
}

// appendCursor makes the cursor of the text in which the server sends a value.
// It reports false for what is no instant: zero dates, and those that no
// calendar has, which some servers let pass.
func (k timeKind) appendCursor(dst, text []byte) ([]byte, bool) {
	if k == timeDate {
		return append(dst, text...), len(text) == len(time.DateOnly) && validTime(text)
	}
	if len(text) < len(time.DateTime) || !validTime(text[:len(time.DateTime)]) {
		return dst, false
	}
	return source.AppendMicros(dst, text)
}

// validTime checks a date, or a date with a time: its shape and the calendar.
func validTime(text []byte) bool {
	if !source.IsWallText(text) {
		return false
	}
	year, month, day := source.Number(text[0:4]), source.Number(text[5:7]), source.Number(text[8:10])
	return year > 0 && month >= 1 && month <= 12 && day >= 1 && (day <= 28 || day <= daysIn(year, month))
}

func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// literal writes a cursor as a literal, which needs no quoting. It reports false for what
// is none.
func (k timeKind) literal(cursor string) (text string, ok bool) {
	return "'" + cursor + "'", k.Has(cursor)
}

// least writes an instant as the least cursor of a row that is written from
// then on. Columns without fractions of a second cut them off, so it does too.
func (k timeKind) least(t time.Time, loc *time.Location) string {
	return k.Horizon(t.Truncate(time.Second), loc)
}

// most writes an instant as the highest cursor of a row that was written until
// then: rounded up, as some servers round, and by the highest reading of a
// clock that went back a moment ago.
func (k timeKind) most(t time.Time, loc *time.Location) string {
	if up := t.Truncate(time.Second); up.Before(t) {
		t = up.Add(time.Second)
	}
	if k == timeUTC {
		return t.UTC().Format(source.MicroLayout)
	}
	wall := t.In(loc)
	if start, _ := wall.ZoneBounds(); !start.IsZero() {
		before := start.Add(-time.Second).In(loc)
		if before.Format(time.DateTime) > wall.Format(time.DateTime) {
			wall = before
		}
	}
	return wall.Format(k.Layout)
}
