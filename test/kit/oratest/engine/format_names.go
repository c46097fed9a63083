package engine

import (
	"strconv"
	"strings"
	"time"
)

func (r *reader) monthName() error {
	for m := time.January; m <= time.December; m++ {
		for _, name := range []string{m.String(), m.String()[:3]} {
			if len(r.rest) >= len(name) && strings.EqualFold(r.rest[:len(name)], name) {
				r.month, r.rest = int(m), r.rest[len(name):]
				return nil
			}
		}
	}
	return refuse(1843)
}

func (r *reader) weekday() error {
	for d := time.Sunday; d <= time.Saturday; d++ {
		for _, name := range []string{d.String(), d.String()[:3]} {
			if len(r.rest) >= len(name) && strings.EqualFold(r.rest[:len(name)], name) {
				r.rest = r.rest[len(name):]
				return nil
			}
		}
	}
	return refuse(1846)
}

func (r *reader) meridian(width int) error {
	if len(r.rest) < width {
		return refuse(1855)
	}
	half := strings.ToUpper(strings.ReplaceAll(r.rest[:width], ".", ""))
	if half != "AM" && half != "PM" {
		return refuse(1855)
	}
	r.half, r.rest = half, r.rest[width:]
	return nil
}

func (r *reader) region() error {
	name, rest, _ := strings.Cut(r.rest, " ")
	if _, ok := location(name); !ok {
		return refuse(1882)
	}
	r.zone, r.rest = name, rest
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
	if r.half == "PM" && r.hour < 12 {
		r.hour += 12
	} else if r.half == "AM" && r.hour == 12 {
		r.hour = 0
	}
	if r.year < -4713 || r.year == 0 || r.year > 9999 {
		return time.Time{}, "", refuse(1841)
	}
	if r.yearDay > 0 {
		d := time.Date(r.year, 1, r.yearDay, 0, 0, 0, 0, time.UTC)
		r.month, r.day = int(d.Month()), d.Day()
	}
	t := time.Date(r.year, time.Month(r.month), r.day, r.hour, r.minute, r.second, r.nano, time.UTC)
	if t.Day() != r.day {
		return time.Time{}, "", refuse(1839)
	}
	if r.hasZone && r.zone == "" {
		r.zone = offsetName(r.offset())
	}
	return t, r.zone, nil
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
