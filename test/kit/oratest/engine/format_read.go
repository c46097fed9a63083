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
func readTime(s string, format []element, now time.Time) (t time.Time, zone string, err error) {
	r := reader{rest: strings.TrimSpace(s), year: now.Year(), month: int(now.Month()), day: 1}
	for _, e := range format {
		if err := r.element(e); err != nil {
			return time.Time{}, "", err
		}
	}
	if strings.TrimSpace(r.rest) != "" {
		return time.Time{}, "", refuse(1830)
	}
	return r.result()
}

func (r *reader) element(e element) error {
	if r.rest == "" {
		return refuse(1840)
	}
	if e.field == "" {
		return r.literal(e.literal)
	}
	if e.field != "TZH" && e.field != "FF" {
		r.rest = strings.TrimLeft(r.rest, " ")
	}
	if e.field == "TZH" {
		return r.zoneHour()
	}
	return r.number(e)
}

func (r *reader) literal(want string) error {
	rest, ok := strings.CutPrefix(r.rest, want)
	if !ok {
		return refuse(1861)
	}
	r.rest = rest
	return nil
}

func (r *reader) number(e element) error {
	width := 2
	switch e.field {
	case "YYYY", "SYYYY":
		width = 4
	case "FF":
		width = 9
	}
	if e.field == "FF" && e.digits > 0 {
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
		return refuse(1858)
	}
	digits := r.rest[:n]
	r.rest = r.rest[n:]
	value, err := strconv.Atoi(digits)
	if err != nil {
		return refuse(1858)
	}
	if before {
		value = -value
	}
	return r.set(e.field, value, digits)
}

func (r *reader) set(field string, n int, digits string) error {
	switch field {
	case "YYYY", "SYYYY":
		r.year = n
	case "MM":
		r.month = n
		return within(n, 1, 12, 1843)
	case "DD":
		r.day = n
		return within(n, 1, 31, 1847)
	case "HH24":
		r.hour = n
		return within(n, 0, 23, 1850)
	case "MI":
		r.minute = n
		return within(n, 0, 59, 1851)
	case "SS":
		r.second = n
		return within(n, 0, 59, 1852)
	case "FF":
		nano, err := strconv.Atoi((digits + "000000000")[:9])
		if err != nil {
			return refuse(1858)
		}
		r.nano = nano
	case "TZM":
		r.tzm, r.hasZone = n, true
	}
	return nil
}

func within(n, low, high, code int) error {
	if n < low || n > high {
		return refuse(code)
	}
	return nil
}

func (r *reader) zoneHour() error {
	s := strings.TrimLeft(r.rest, " ")
	n := 0
	for n < len(s) && n < 3 && (s[n] >= '0' && s[n] <= '9' || n == 0 && (s[n] == '+' || s[n] == '-')) {
		n++
	}
	hour, err := strconv.Atoi(s[:n])
	if err != nil {
		return refuse(1858)
	}
	r.tzh, r.hasZone, r.rest = hour, true, s[n:]
	if s[0] == '-' && hour == 0 {
		r.tzh = -100 // The sign of an offset within the hour.
	}
	return within(hour, -15, 15, 1874)
}

// result puts the fields together.
func (r *reader) result() (time.Time, string, error) {
	if r.year < -4713 || r.year == 0 || r.year > 9999 {
		return time.Time{}, "", refuse(1841)
	}
	t := time.Date(r.year, time.Month(r.month), r.day, r.hour, r.minute, r.second, r.nano, time.UTC)
	if t.Day() != r.day {
		return time.Time{}, "", refuse(1839)
	}
	if !r.hasZone {
		return t, "", nil
	}
	return t, offsetName(r.offset()), nil
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
