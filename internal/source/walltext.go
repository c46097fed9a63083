package source

import "time"

// Wall-clock readings as the databases write them, "2026-03-29 01:30:00.5", are
// checked and read byte by byte: a layout of package time would cost more than
// all the rest in the loop over the rows.

const wallShape = "0000-00-00 00:00:00.000000000"

const (
	dateSize   = len("0000-00-00")
	secondSize = len("0000-00-00 00:00:00")
	microSize  = len("0000-00-00 00:00:00.000000")
)

// IsWallText reports whether a text has the shape of a reading, or of the
// beginning of one. It does not look into a calendar.
func IsWallText(text []byte) bool {
	if len(text) > len(wallShape) {
		return false
	}
	for i, c := range text {
		want := wallShape[i]
		if want == '0' && (c < '0' || c > '9') || want != '0' && c != want {
			return false
		}
	}
	return true
}

// AppendMicros appends a reading with its fraction filled up to six digits, the
// width at which readings sort as texts. It reports false for text that is no
// reading, or has a finer fraction.
func AppendMicros(dst, text []byte) ([]byte, bool) {
	if len(text) < secondSize || len(text) > microSize || !IsWallText(text) {
		return dst, false
	}
	dst = append(dst, text...)
	if len(text) == secondSize {
		dst = append(dst, '.')
	}
	fraction := max(0, len(text)-secondSize-1)
	return append(dst, "000000"[fraction:]...), true
}

// ReadWall returns the instant at which clocks in loc show a reading, that of
// midnight for a date; either of two such instants. The shape of the text was checked.
func ReadWall(text []byte, loc *time.Location) time.Time {
	year, month, day := Number(text[0:4]), time.Month(Number(text[5:7])), Number(text[8:10])
	if len(text) <= dateSize {
		return time.Date(year, month, day, 0, 0, 0, 0, loc)
	}
	nanos := 0
	if len(text) > secondSize {
		fraction := text[secondSize+1:]
		nanos = Number(fraction)
		for range len(wallShape) - secondSize - 1 - len(fraction) {
			nanos *= 10
		}
	}
	return time.Date(year, month, day, Number(text[11:13]), Number(text[14:16]), Number(text[17:19]), nanos, loc)
}

// Number reads decimal digits that were checked.
func Number(digits []byte) int {
	n := 0
	for _, c := range digits {
		n = n*10 + int(c-'0')
	}
	return n
}
