package engine

import (
	"strconv"
	"time"
)

// writeTime writes a time, or an instant in a zone, in a format. Oracle has no
// fraction for a DATE and no zone for a wall clock: 01821.
func writeTime(v value, format []element, session *session) string {
	t := displayed(v, session)
	b := make([]byte, 0, 40)
	for _, e := range format {
		switch {
		case e.field == "":
			b = append(b, e.literal...)
		case v.kind == kindDate && (e.field == "FF" || e.field[0] == 'T'):
			panic(refuse(1821))
		default:
			b = appendField(b, e, t)
		}
	}
	return string(b)
}

// displayed is the time of which the fields are written.
func displayed(v value, session *session) time.Time {
	switch v.kind {
	case kindTimestampTZ:
		return v.zoned()
	case kindTimestampLTZ:
		return v.time().In(session.zone)
	case kindTimestamp, kindDate:
		return v.time()
	}
	panic(refuse(932, "DATE", "OTHER"))
}

func appendField(b []byte, e element, t time.Time) []byte {
	_, offset := t.Zone()
	switch e.field {
	case "YYYY", "SYYYY":
		return appendPadded(b, t.Year(), 4)
	case "MM":
		return appendPadded(b, int(t.Month()), 2)
	case "DD":
		return appendPadded(b, t.Day(), 2)
	case "HH24":
		return appendPadded(b, t.Hour(), 2)
	case "MI":
		return appendPadded(b, t.Minute(), 2)
	case "SS":
		return appendPadded(b, t.Second(), 2)
	case "TZH":
		return append(b, offsetName(offset)[:3]...)
	case "TZM":
		return append(b, offsetName(offset)[4:]...)
	}
	return append(b, appendPadded(nil, t.Nanosecond(), 9)[:e.digits]...)
}

func appendPadded(b []byte, n, width int) []byte {
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	start := len(b)
	b = strconv.AppendInt(b, int64(n), 10)
	if missing := width - (len(b) - start); missing > 0 {
		b = append(b, "000000000"[:missing]...)
		copy(b[start+missing:], b[start:len(b)-missing])
		copy(b[start:start+missing], "000000000")
	}
	return b
}
