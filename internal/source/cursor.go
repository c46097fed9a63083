package source

import (
	"strings"
	"time"
)

// MicroLayout is a layout of cursors. These have a fixed width: the order of the texts is that
// of the times.
const MicroLayout = time.DateTime + ".000000"

// CursorForm is how the timestamps of a column are written as cursors.
type CursorForm struct {
	// Layout is that of package time. A Z may end it.
	Layout string
	// UTC says that cursors are in UTC; otherwise as the clocks of a zone show the time.
	UTC bool
}

// Has reports whether a text is a cursor of this form.
func (f CursorForm) Has(text string) bool {
	if len(text) != len(f.Layout) || !IsWallText([]byte(strings.TrimSuffix(text, "Z"))) {
		return false
	}
	t, err := time.Parse(f.Layout, text)
	return err == nil && t.Year() > 0
}

// Instant is that of a cursor whose shape was checked, without the cost of a layout
// in the loop over all rows.
func (f CursorForm) Instant(cursor []byte, loc *time.Location) time.Time {
	if f.UTC {
		loc = time.UTC
	}
	return ReadWall(cursor, loc)
}

// Horizon writes an instant as a cursor that no later row will be below.
func (f CursorForm) Horizon(t time.Time, loc *time.Location) string {
	if f.UTC {
		return t.UTC().Format(f.Layout)
	}
	return EarliestWall(t, loc).Format(f.Layout)
}

// TextCursors are the cursors of a source whose columns have one form each: they are
// ordered by their text.
type TextCursors struct{}

// Compare implements [observer.Source].
func (TextCursors) Compare(a, b string) int { return strings.Compare(a, b) }

// Restate implements [observer.Source].
func (TextCursors) Restate(cursor, _ string) string { return cursor }
