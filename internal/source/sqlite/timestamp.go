package sqlite

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// form is how a table writes its timestamps.
type form struct {
	kind formKind
	unit time.Duration // of formEpoch
	// Of formText: the byte between date and time (0 for a date alone), and
	// whether seconds are written. zoned text names its own offset from UTC.
	separator byte
	seconds   bool
	zoned     bool
	offset    int
}

type formKind int

const (
	formText formKind = iota + 1
	formEpoch
	formReal
	formJulian
)

// parseValue reads a stored value. It reports false for what is no timestamp.
func parseValue(value any, loc *time.Location) (form, time.Time, bool) {
	switch v := value.(type) {
	case int64:
		f := form{kind: formEpoch, unit: unitOf(v)}
		return f, f.fromEpoch(v), true
	case float64:
		return parseReal(v)
	case string:
		return parseText(v, loc)
	}
	return form{}, time.Time{}, false
}

// unitOf tells the unit of a number of the time since 1970 by its size.
func unitOf(v int64) time.Duration {
	switch {
	case v > -1e11 && v < 1e11:
		return time.Second
	case v > -1e14 && v < 1e14:
		return time.Millisecond
	case v > -1e17 && v < 1e17:
		return time.Microsecond
	}
	return time.Nanosecond
}

func (f form) fromEpoch(v int64) time.Time {
	switch f.unit {
	case time.Second:
		return time.Unix(v, 0).UTC()
	case time.Millisecond:
		return time.UnixMilli(v).UTC()
	case time.Microsecond:
		return time.UnixMicro(v).UTC()
	}
	return time.Unix(0, v).UTC()
}

// julianEpoch is 1970-01-01 as a Julian day; the others bound the years of
// SQLite's date functions.
const (
	julianEpoch = 2440587.5
	julianFirst = 1721059.5
	julianLast  = 5373484.5
	daySeconds  = 86400
)

func parseReal(v float64) (form, time.Time, bool) {
	f := form{kind: formReal}
	if v >= julianFirst && v < julianLast {
		f.kind = formJulian
		v = (v - julianEpoch) * daySeconds
	}
	if math.Abs(v) >= 1e11 || math.IsNaN(v) {
		return form{}, time.Time{}, false
	}
	whole, part := math.Modf(v)
	return f, time.Unix(int64(whole), int64(part*1e9)).UTC(), true
}

// parseText reads the ISO 8601 forms that SQLite's own functions and common
// drivers write.
func parseText(text string, loc *time.Location) (form, time.Time, bool) {
	f := form{kind: formText}
	date, ok := fields(text, "0000-00-00")
	if !ok {
		return form{}, time.Time{}, false
	}
	var clock [3]int
	nanos := 0
	rest := text[len("0000-00-00"):]
	if rest != "" {
		f.separator = rest[0]
		if f.separator != ' ' && f.separator != 'T' {
			return form{}, time.Time{}, false
		}
		if clock, nanos, rest, ok = parseClock(rest[1:], &f); !ok {
			return form{}, time.Time{}, false
		}
		if loc, ok = parseZone(rest, loc, &f); !ok {
			return form{}, time.Time{}, false
		}
	}
	t := time.Date(date[0], time.Month(date[1]), date[2], clock[0], clock[1], clock[2], nanos, loc)
	valid := date[1] >= 1 && date[1] <= 12 && date[2] >= 1 && date[2] <= 31 && clock[0] < 24 && clock[1] < 60 && clock[2] < 60
	return f, t, valid
}

// parseClock reads "00:00", "00:00:00" or "00:00:00.5" and returns what follows.
func parseClock(text string, f *form) (clock [3]int, nanos int, rest string, ok bool) {
	if clock, f.seconds = fields(text, "00:00:00"); !f.seconds {
		clock, ok = fields(text, "00:00")
		return clock, 0, text[min(len(text), len("00:00")):], ok
	}
	rest = text[len("00:00:00"):]
	if len(rest) < 2 || rest[0] != '.' || rest[1] < '0' || rest[1] > '9' {
		return clock, 0, rest, true
	}
	i, scale := 1, 100_000_000
	for ; i < len(rest) && rest[i] >= '0' && rest[i] <= '9'; i++ {
		nanos += int(rest[i]-'0') * scale
		scale /= 10
	}
	return clock, nanos, rest[i:], true
}

// parseZone reads "Z", "+02:00", "+0200" or " +0200 CEST"; nothing means loc.
func parseZone(text string, loc *time.Location, f *form) (*time.Location, bool) {
	if text == "" {
		return loc, true
	}
	f.zoned = true
	if text == "Z" {
		return time.UTC, true
	}
	text, _, _ = strings.Cut(strings.TrimPrefix(text, " "), " ")
	if text == "" || text[0] != '+' && text[0] != '-' {
		return nil, false
	}
	of, ok := fields(text[1:], "00:00")
	if !ok || len(text) != len("+00:00") {
		if of, ok = fields(text[1:], "0000"); !ok || len(text) != len("+0000") {
			return nil, false
		}
		of[0], of[1] = of[0]/100, of[0]%100
	}
	f.offset = of[0]*3600 + of[1]*60
	if text[0] == '-' {
		f.offset = -f.offset
	}
	if f.offset == 0 {
		return time.UTC, true
	}
	return time.FixedZone("", f.offset), of[0] < 24 && of[1] < 60
}

// fields reads up to three numbers at the start of text, laid out as in the
// pattern, in which 0 stands for a digit.
func fields(text, pattern string) (numbers [3]int, ok bool) {
	if len(text) < len(pattern) {
		return numbers, false
	}
	n := 0
	for i := range len(pattern) {
		c := text[i]
		switch {
		case pattern[i] != '0':
			if c != pattern[i] {
				return numbers, false
			}
			n++
		case c < '0' || c > '9':
			return numbers, false
		default:
			numbers[n] = numbers[n]*10 + int(c-'0')
		}
	}
	return numbers, true
}

// appendCursor writes a value that parseValue has accepted.
func appendCursor(dst []byte, value any) []byte {
	switch v := value.(type) {
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	case string:
		return append(dst, v...)
	}
	return dst
}

// parseCursor undoes appendCursor, so that a parameter has the type that the
// column is indexed by. A number that is whole may have been a REAL; SQLite
// compares the two by value.
func parseCursor(text string) (any, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	if isDecimal(text) {
		r, err := strconv.ParseFloat(text, 64)
		return r, err == nil
	}
	_, _, ok := parseText(text, time.UTC)
	return text, ok
}

// isDecimal leaves out what ParseFloat knows beyond digits, such as "inf".
func isDecimal(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.Trim(digits, "0123456789.") == ""
}
