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
	yearDay  int
	hour     int
	minute   int
	second   int
	nano     int
	half     string // AM or PM
	zone     string
	hasZone  bool
	tzh, tzm int
	now      time.Time
}

// readTime reads text in a format. The zone is empty where the format has none.
// Fields of the date that are missing are those of now: the first of this month.
func readTime(s string, format []element, now time.Time) (t time.Time, zone string, err error) {
	r := reader{rest: strings.TrimSpace(s), year: now.Year(), month: int(now.Month()), day: 1, now: now}
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
		return optional(e)
	}
	if e.field == "" {
		return r.literal(e.literal)
	}
	if e.field != "TZH" && e.field != "FF" {
		r.rest = strings.TrimLeft(r.rest, " ")
	}
	switch e.field {
	case "MONTH", "MON":
		return r.monthName()
	case "DAY", "DY":
		return r.weekday()
	case "AM", "PM", "A.M.", "P.M.":
		return r.meridian(len(e.field))
	case "TZR", "TZD":
		return r.region()
	case "TZH":
		return r.zoneHour()
	case "X":
		return r.literal(".")
	}
	return r.number(e)
}

// optional says whether the text may end before an element: the time of day
// may be left out, the date may not.
func optional(e element) error {
	switch e.field {
	case "HH24", "HH", "HH12", "MI", "SS", "SSSSS", "FF", "X", "AM", "PM", "A.M.", "P.M.", "TZH", "TZM", "TZR", "TZD", "":
		return nil
	}
	return refuse(1840)
}

// literal accepts any punctuation for punctuation, as Oracle does.
func (r *reader) literal(want string) error {
	for i := range len(want) {
		if r.rest == "" {
			return nil
		}
		got := r.rest[0]
		if got != want[i] && (isWord(got) || isWord(want[i])) {
			if want[i] == ' ' {
				return nil
			}
			return refuse(1861)
		}
		r.rest = r.rest[1:]
	}
	return nil
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

var widths = map[string]int{
	"YYYY": 4, "RRRR": 4, "SYYYY": 4, "YYY": 3, "YY": 2, "RR": 2, "Y": 1, "MM": 2, "DD": 2, "DDD": 3, "HH24": 2,
	"HH": 2, "HH12": 2, "MI": 2, "SS": 2, "SSSSS": 5, "FF": 9, "TZM": 2, "J": 7,
}

func (r *reader) number(e element) error {
	width, ok := widths[e.field]
	if !ok {
		return refuse(1821)
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
		if isWord(r.rest[0]) {
			return refuse(1858)
		}
		return refuse(1861)
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
	case "RRRR", "RR":
		r.year = century(n, len(digits))
	case "YYY":
		r.year = r.now.Year()/1000*1000 + n
	case "YY":
		r.year = r.now.Year()/100*100 + n
	case "Y":
		r.year = r.now.Year()/10*10 + n
	case "MM":
		r.month = n
		return within(n, 1, 12, 1843)
	case "DD":
		r.day = n
		return within(n, 1, 31, 1847)
	case "DDD":
		r.yearDay = n
		return within(n, 1, 366, 1848)
	case "HH24":
		r.hour = n
		return within(n, 0, 23, 1850)
	case "HH", "HH12":
		r.hour = n
		return within(n, 1, 12, 1849)
	case "MI":
		r.minute = n
		return within(n, 0, 59, 1851)
	case "SS":
		r.second = n
		return within(n, 0, 59, 1852)
	case "SSSSS":
		r.hour, r.minute, r.second = n/3600, n/60%60, n%60
		return within(n, 0, 86399, 1853)
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

// century gives years of two digits the nearer century.
func century(n, digits int) int {
	switch {
	case digits > 2:
		return n
	case n < 50:
		return 2000 + n
	}
	return 1900 + n
}

func within(n, low, high, code int) error {
	if n < low || n > high {
		return refuse(code)
	}
	return nil
}
