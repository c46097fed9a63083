package engine

import (
	"strconv"
	"strings"
	"time"
)

// reader reads a time from text, field by field.
type reader struct {
	rest     string
	year     int
	month    int
	day      int
	hour     int
	minute   int
	second   int
	nano     int
	hasZone  bool
	tzh, tzm int
}

// readTime reads text in a format. The zone is empty where the format has none.
// Fields of the date that are missing are those of now: the first of this month.
func readTime(s string, format []element, now time.Time) (t time.Time, zone string) {
	r := reader{rest: strings.TrimSpace(s), year: now.Year(), month: int(now.Month()), day: 1}
	for _, e := range format {
		r.element(e)
	}
	if strings.TrimSpace(r.rest) != "" {
		panic(refuse(1830))
	}
	return r.result()
}

func (r *reader) element(e element) {
	if r.rest == "" {
		panic(refuse(1840))
	}
	switch e.field {
	case "":
		r.literal(e.literal)
	case "TZH":
		r.zoneHour()
	default:
		if e.field != "FF" {
			r.rest = strings.TrimLeft(r.rest, " ")
		}
		r.number(e)
	}
}

func (r *reader) literal(want string) {
	rest, ok := strings.CutPrefix(r.rest, want)
	if !ok {
		panic(refuse(1861))
	}
	r.rest = rest
}

func (r *reader) number(e element) {
	width := 2
	switch e.field {
	case "YYYY", "SYYYY":
		width = 4
	case "FF":
		width = e.digits
	}
	rest, before := strings.CutPrefix(r.rest, "-")
	if before = before && e.field == "SYYYY"; before {
		r.rest = rest
	}
	n := 0
	for n < len(r.rest) && n < width && r.rest[n] >= '0' && r.rest[n] <= '9' {
		n++
	}
	if n == 0 {
		panic(refuse(1858))
	}
	digits := r.rest[:n]
	r.rest = r.rest[n:]
	value, err := strconv.Atoi(digits)
	if err != nil {
		panic(refuse(1858))
	}
	if before {
		value = -value
	}
	r.set(e.field, value, digits)
}

func (r *reader) set(field string, n int, digits string) {
	switch field {
	case "YYYY", "SYYYY":
		r.year = n
	case "MM":
		r.month = n
		within(n, 1, 12, 1843)
	case "DD":
		r.day = n
		within(n, 1, 31, 1847)
	case "HH24":
		r.hour = n
		within(n, 0, 23, 1850)
	case "MI":
		r.minute = n
		within(n, 0, 59, 1851)
	case "SS":
		r.second = n
		within(n, 0, 59, 1852)
	case "FF":
		nano, err := strconv.Atoi((digits + "000000000")[:9])
		if err != nil {
			panic(refuse(1858))
		}
		r.nano = nano
	case "TZM":
		r.tzm, r.hasZone = n, true
	}
}

func within(n, low, high, code int) {
	if n < low || n > high {
		panic(refuse(code))
	}
}

func (r *reader) zoneHour() {
	s := strings.TrimLeft(r.rest, " ")
	n := 0
	for n < len(s) && n < 3 && (s[n] >= '0' && s[n] <= '9' || n == 0 && (s[n] == '+' || s[n] == '-')) {
		n++
	}
	hour, err := strconv.Atoi(s[:n])
	if err != nil {
		panic(refuse(1858))
	}
	r.tzh, r.hasZone, r.rest = hour, true, s[n:]
	if s[0] == '-' && hour == 0 {
		r.tzh = -100 // The sign of an offset within the hour.
	}
	within(hour, -15, 15, 1874)
}

// result puts the fields together.
func (r *reader) result() (time.Time, string) {
	if r.year < -4713 || r.year == 0 || r.year > 9999 {
		panic(refuse(1841))
	}
	t := time.Date(r.year, time.Month(r.month), r.day, r.hour, r.minute, r.second, r.nano, time.UTC)
	if t.Day() != r.day {
		panic(refuse(1839))
	}
	if !r.hasZone {
		return t, ""
	}
	return t, offsetName(r.offset())
}

func (r *reader) offset() int {
	switch {
	case r.tzh == -100:
		return -r.tzm * 60
	case r.tzh < 0:
		return r.tzh*3600 - r.tzm*60
	}
	return r.tzh*3600 + r.tzm*60
}
