package sqlite

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// layout is how a text writes a timestamp: the byte between date and time (0 for a
// date alone), and whether seconds are written. zoned text names its own offset from
// UTC.
type layout struct {
	separator byte
	seconds   bool
	zoned     bool
	offset    int
}

// parseValue reads a stored value. It reports false for what is no timestamp.
func parseValue(value any, loc *time.Location) (form, time.Time, bool) {
	if text, ok := value.(string); ok {
		_, t, ok := parseText(text, loc)
		return formText, t, ok
	}
	f := formOfNumber(value)
	switch n, whole := value.(int64); {
	case f == "":
		return "", time.Time{}, false
	case f == formJulian:
		return f, since1970((asFloat(value)-julianEpoch)*daySeconds, time.Second), true
	case whole:
		each := int64(time.Second / f.unit())
		return f, time.Unix(n/each, n%each*int64(f.unit())).UTC(), true
	}
	return f, since1970(asFloat(value), f.unit()), true
}

// since1970 is for numbers with a fraction.
func since1970(n float64, unit time.Duration) time.Time {
	whole, part := math.Modf(n)
	each := int64(time.Second / unit)
	seconds, rest := int64(whole)/each, int64(whole)%each
	return time.Unix(seconds, rest*int64(unit)+int64(part*float64(unit))).UTC()
}

// parseText reads the ISO 8601 forms that SQLite's own functions and common
// drivers write.
func parseText(text string, loc *time.Location) (layout, time.Time, bool) {
	var f layout
	date, ok := fields(text, "0000-00-00")
	if !ok {
		return layout{}, time.Time{}, false
	}
	var clock [3]int
	nanos := 0
	rest := text[len("0000-00-00"):]
	if rest != "" {
		f.separator = rest[0]
		if f.separator != ' ' && f.separator != 'T' {
			return layout{}, time.Time{}, false
		}
		if clock, nanos, rest, ok = parseClock(rest[1:], &f); !ok {
			return layout{}, time.Time{}, false
		}
		if loc, ok = parseZone(rest, loc, &f); !ok {
			return layout{}, time.Time{}, false
		}
	}
	t := time.Date(date[0], time.Month(date[1]), date[2], clock[0], clock[1], clock[2], nanos, loc)
	valid := date[1] >= 1 && date[1] <= 12 && date[2] >= 1 && date[2] <= 31 && clock[0] < 24 && clock[1] < 60 && clock[2] < 60
	return f, t, valid
}

// parseClock reads "00:00", "00:00:00" or "00:00:00.5" and returns what follows.
func parseClock(text string, f *layout) (clock [3]int, nanos int, rest string, ok bool) {
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
func parseZone(text string, loc *time.Location, f *layout) (*time.Location, bool) {
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
