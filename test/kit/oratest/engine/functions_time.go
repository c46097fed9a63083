package engine

import (
	"strings"
	"time"
)

var timeFunctions = map[string]function{
	"TO_CHAR":         {1, 3, toChar},
	"TO_NCHAR":        {1, 3, toChar},
	"TO_DATE":         {1, 3, fromText(typeDate)},
	"TO_TIMESTAMP":    {1, 3, fromText(typeTimestamp)},
	"TO_TIMESTAMP_TZ": {1, 3, fromText(typeTimestampTZ)},
	"SYS_EXTRACT_UTC": {1, 1, simple(plain(typeTimestamp), []kind{kindTimestampTZ}, func(_ *session, v []value) (value, error) {
		return wall(kindTimestamp, v[0].time()), nil
	})},
	"FROM_TZ": {2, 2, simple(plain(typeTimestampTZ), []kind{kindTimestamp, kindText}, func(_ *session, v []value) (value, error) {
		return inZone(v[0].time(), v[1].s)
	})},
	"TZ_OFFSET": {1, 1, simple(varchar(7), []kind{kindText}, tzOffset)},
	"ADD_MONTHS": {2, 2, simple(plain(typeDate), []kind{kindDate, kindNumber}, func(_ *session, v []value) (value, error) {
		months, _ := v[1].int64()
		return addMonths(v[0], int(months)), nil
	})},
	"LAST_DAY": {1, 1, simple(plain(typeDate), []kind{kindDate}, func(_ *session, v []value) (value, error) {
		t := v[0].time()
		return wall(kindDate, t.AddDate(0, 1, -t.Day())), nil
	})},
	"NUMTODSINTERVAL": {2, 2, simple(plain(typeInterval), []kind{kindNumber, kindText}, func(_ *session, v []value) (value, error) {
		unit, ok := units[strings.ToUpper(strings.TrimSpace(v[1].s))]
		if !ok {
			return null, refuse(1760)
		}
		return scaled(v[0], unit), nil
	})},
	"TO_DSINTERVAL": {1, 1, simple(plain(typeInterval), []kind{kindText}, func(s *session, v []value) (value, error) {
		return s.convert(v[0], kindInterval)
	})},
}

// toChar writes a time or a number in a format, or anything in its usual form.
func toChar(c *compiler, args []*node) *node {
	s, in := c.session, args[0]
	size := 4000
	if in.typ.isText() && in.typ.size > 0 {
		size = in.typ.bytes()
	}
	if len(args) == 1 {
		if k := in.typ.kind(); k == kindNumber {
			size = 40
		} else if k != kindText {
			size = 75
		}
		out := *c.to(in, kindText)
		out.typ, out.column = varchar(size), nil
		return &out
	}
	k := in.typ.kind()
	if ranks[k] == 0 && k != kindNumber && k != kindDouble {
		// Text is taken for a number.
		in, k = c.to(in, kindNumber), kindNumber
	}
	if f := args[1].literal; f != nil && ranks[k] > 0 {
		format, err := parseFormat(f.s)
		if err != nil {
			panic(err)
		}
		format = withDigits(format, in.typ.scale)
		return derived(varchar(75), in, func(v value) (value, error) {
			t, err := writeTime(v, format, s)
			return text(t), err
		}).inherit(args[1])
	}
	return pair(varchar(75), in, args[1], func(v, format value) (value, error) {
		if ranks[k] == 0 {
			t, err := writeNumber(v, format.s)
			return text(t), err
		}
		parsed, err := parseFormat(format.s)
		if err != nil {
			return null, err
		}
		t, err := writeTime(v, withDigits(parsed, in.typ.scale), s)
		return text(t), err
	})
}

// fromText reads a time in a format, or in the session's without one.
func fromText(name typeName) func(*compiler, []*node) *node {
	typ := plain(name)
	return func(c *compiler, args []*node) *node {
		s := c.session
		if len(args) == 1 {
			if args[0].typ.kind() == typ.kind() {
				return args[0]
			}
			return derived(typ, c.to(args[0], kindText), func(v value) (value, error) { return s.convert(v, typ.kind()) })
		}
		return pair(typ, c.to(args[0], kindText), c.to(args[1], kindText), func(v, format value) (value, error) {
			parsed, err := parseFormat(format.s)
			if err != nil {
				return null, err
			}
			for _, e := range parsed {
				if name == typeDate && (e.field == "FF" || e.field == "TZR" || e.field == "TZH") {
					return null, refuse(1821)
				}
			}
			return s.readText(v.s, parsed, typ.kind())
		})
	}
}

func tzOffset(s *session, v []value) (value, error) {
	loc, ok := location(v[0].s)
	if !ok {
		return null, refuse(1882)
	}
	_, offset := s.engine.now().In(loc).Zone()
	return text(offsetName(offset)), nil
}

// addMonths keeps the last day of a month the last one.
func addMonths(v value, n int) value {
	t := v.time()
	first := time.Date(t.Year(), t.Month()+time.Month(n), 1, t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	day := t.Day()
	if t.AddDate(0, 0, 1).Day() == 1 || day > last {
		day = last
	}
	return wall(kindDate, first.AddDate(0, 0, day-1))
}

// truncateTime is TRUNC of a time.
func truncateTime(v value, format string) (value, error) {
	t := v.time()
	y, m, d := t.Date()
	switch strings.ToUpper(format) {
	case "", "DD", "DDD", "J":
		t = time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	case "MM", "MON", "MONTH":
		t = time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	case "YYYY", "YEAR", "YY", "Y":
		t = time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC)
	case "HH", "HH24", "HH12":
		t = t.Truncate(time.Hour)
	case "MI":
		t = t.Truncate(time.Minute)
	default:
		return null, refuse(1898)
	}
	return wall(kindDate, t), nil
}
