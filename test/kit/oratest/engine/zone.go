package engine

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// location finds a time zone by its region or its offset, +02:00.
func location(name string) (*time.Location, bool) {
	if offset, ok := parseOffset(name); ok {
		return time.FixedZone(offsetName(offset), offset), true
	}
	if strings.EqualFold(name, "UTC") || strings.EqualFold(name, "GMT") {
		return time.UTC, true
	}
	if name == "" || strings.EqualFold(name, "LOCAL") {
		return nil, false
	}
	loc, err := time.LoadLocation(name)
	return loc, err == nil
}

// parseOffset reads +hh:mm, in seconds east of UTC.
func parseOffset(s string) (int, bool) {
	s = strings.TrimSpace(s)
	sign := 1
	switch {
	case strings.HasPrefix(s, "-"):
		sign = -1
	case !strings.HasPrefix(s, "+"):
		return 0, false
	}
	hours, minutes, found := strings.Cut(s[1:], ":")
	h, err := strconv.Atoi(hours)
	if err != nil || h > 15 {
		return 0, false
	}
	m := 0
	if found {
		if m, err = strconv.Atoi(minutes); err != nil || m > 59 {
			return 0, false
		}
	}
	return sign * (h*3600 + m*60), true
}

func offsetName(seconds int) string {
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	return fmt.Sprintf("%c%02d:%02d", sign, seconds/3600, seconds/60%60)
}

// zoneName is how a TIMESTAMP WITH TIME ZONE spells a location.
func zoneName(loc *time.Location) string {
	if loc == time.UTC {
		return "UTC"
	}
	return loc.String()
}

// civil returns the fields of a wall clock in a zone as an instant. A time that
// the zone skips does not exist: false.
func civil(v value, loc *time.Location) (time.Time, bool) {
	w := v.time()
	t := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), w.Nanosecond(), loc)
	return t, t.Hour() == w.Hour() && t.Minute() == w.Minute()
}

// zoned returns a TIMESTAMP WITH TIME ZONE as a time in its zone.
func (v value) zoned() time.Time {
	loc, _ := location(v.s)
	return v.time().In(loc)
}
