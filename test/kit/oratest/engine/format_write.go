package engine

import (
	"strconv"
	"strings"
	"time"
)

// writeTime writes a time, or an instant in a zone, in a format. Oracle has no
// fraction for a DATE and no zone for a wall clock: 01821.
func writeTime(v value, format []element, session *session) (string, error) {
	t, err := displayed(v, session)
	if err != nil {
		return "", err
	}
	b := make([]byte, 0, 40)
	for _, e := range format {
		switch {
		case e.field == "":
			b = append(b, e.literal...)
		case v.kind == kindDate && (e.field == "FF" || e.field[0] == 'T'):
			return "", refuse(1821)
		default:
			b = appendField(b, e, t)
		}
	}
	return string(b), nil
}

// displayed is the time of which the fields are written.
func displayed(v value, session *session) (time.Time, error) {
	switch v.kind {
	case kindTimestampTZ:
		return v.zoned(), nil
	case kindTimestampLTZ:
		return v.time().In(session.zone), nil
	case kindTimestamp, kindDate:
		return v.time(), nil
	}
	return time.Time{}, refuse(932, "DATE", "OTHER")
}

func appendField(b []byte, e element, t time.Time) []byte {
	switch e.field {
	case "YYYY", "RRRR", "SYYYY", "IYYY":
		return appendPadded(b, yearOf(e, t), 4, e.fill)
	case "Y,YYY":
		return append(b, strconv.Itoa(t.Year()/1000)+","+pad(t.Year()%1000, 3)...)
	case "YYY":
		return appendPadded(b, t.Year()%1000, 3, e.fill)
	case "YY", "RR":
		return appendPadded(b, t.Year()%100, 2, e.fill)
	case "Y":
		return appendPadded(b, t.Year()%10, 1, e.fill)
	case "MM":
		return appendPadded(b, int(t.Month()), 2, e.fill)
	case "DD":
		return appendPadded(b, t.Day(), 2, e.fill)
	case "DDD":
		return appendPadded(b, t.YearDay(), 3, e.fill)
	case "HH24":
		return appendPadded(b, t.Hour(), 2, e.fill)
	case "HH", "HH12":
		return appendPadded(b, (t.Hour()+11)%12+1, 2, e.fill)
	case "MI":
		return appendPadded(b, t.Minute(), 2, e.fill)
	case "SS":
		return appendPadded(b, t.Second(), 2, e.fill)
	case "FF":
		return append(b, fraction(t, e.digits)...)
	}
	return append(b, rareField(e, t)...)
}

func yearOf(e element, t time.Time) int {
	if e.field == "IYYY" {
		year, _ := t.ISOWeek()
		return year
	}
	return t.Year()
}

func rareField(e element, t time.Time) string {
	_, offset := t.Zone()
	switch e.field {
	case "MONTH":
		return named(e, t.Month().String(), 9)
	case "MON":
		return named(e, t.Month().String()[:3], 3)
	case "DAY":
		return named(e, t.Weekday().String(), 9)
	case "DY":
		return named(e, t.Weekday().String()[:3], 3)
	case "D":
		return strconv.Itoa(int(t.Weekday()) + 1)
	case "SSSSS":
		return pad(t.Hour()*3600+t.Minute()*60+t.Second(), 5)
	case "AM", "PM", "A.M.", "P.M.":
		return meridian(e, t)
	case "TZH":
		return offsetName(offset)[:3]
	case "TZM":
		return offsetName(offset)[4:]
	case "TZR":
		return zoneName(t.Location(), t)
	case "TZD":
		name, _ := t.Zone()
		return name
	case "IW":
		_, week := t.ISOWeek()
		return pad(week, 2)
	case "WW":
		return pad((t.YearDay()-1)/7+1, 2)
	case "W":
		return strconv.Itoa((t.Day()-1)/7 + 1)
	case "Q":
		return strconv.Itoa((int(t.Month())-1)/3 + 1)
	case "J":
		return strconv.FormatInt(t.Unix()/86400+2440588, 10)
	}
	return "." // X, the radix character
}

func meridian(e element, t time.Time) string {
	half := "AM"
	if t.Hour() >= 12 {
		half = "PM"
	}
	if len(e.field) == 4 {
		half = half[:1] + "." + half[1:] + "."
	}
	return named(e, half, len(half))
}

// named writes a name in the case of its field: MON, Mon, mon.
func named(e element, name string, width int) string {
	switch {
	case e.spelled == strings.ToLower(e.spelled):
		name = strings.ToLower(name)
	case e.spelled == strings.ToUpper(e.spelled):
		name = strings.ToUpper(name)
	}
	if e.fill && len(name) < width {
		name += strings.Repeat(" ", width-len(name))
	}
	return name
}

func fraction(t time.Time, digits int) string {
	if digits < 0 {
		digits = 9
	}
	return pad(t.Nanosecond(), 9)[:digits]
}

func pad(n, width int) string { return string(appendPadded(nil, n, width, true)) }

func appendPadded(b []byte, n, width int, fill bool) []byte {
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	start := len(b)
	b = strconv.AppendInt(b, int64(n), 10)
	if missing := width - (len(b) - start); fill && missing > 0 {
		b = append(b, "000000000"[:missing]...)
		copy(b[start+missing:], b[start:len(b)-missing])
		copy(b[start:start+missing], "000000000")
	}
	return b
}
