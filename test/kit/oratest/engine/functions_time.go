package engine

import "strings"

var timeFunctions = map[string]function{
	"TO_CHAR":         {1, 3, toChar},
	"TO_NCHAR":        {1, 3, toChar},
	"TO_DATE":         {1, 3, fromText(typeDate)},
	"TO_TIMESTAMP":    {1, 3, fromText(typeTimestamp)},
	"TO_TIMESTAMP_TZ": {1, 3, fromText(typeTimestampTZ)},
	"SYS_EXTRACT_UTC": {1, 1, simple(plain(typeTimestamp), []kind{kindTimestampTZ}, func(_ *session, v []value) value {
		return wall(kindTimestamp, v[0].time())
	})},
	"NUMTODSINTERVAL": {2, 2, simple(plain(typeInterval), []kind{kindNumber, kindText}, func(_ *session, v []value) value {
		unit, ok := units[strings.ToUpper(strings.TrimSpace(v[1].s))]
		if !ok {
			panic(refuse(1760))
		}
		return scaled(v[0], unit)
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
		format := withDigits(parseFormat(f.s), in.typ.scale)
		return derived(varchar(75), in, func(v value) value { return text(writeTime(v, format, s)) }).inherit(args[1])
	}
	return pair(varchar(75), in, args[1], func(v, format value) value {
		if ranks[k] == 0 {
			return text(writeNumber(v, format.s))
		}
		return text(writeTime(v, withDigits(parseFormat(format.s), in.typ.scale), s))
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
			return derived(typ, c.to(args[0], kindText), func(v value) value { return s.convert(v, typ.kind()) })
		}
		return pair(typ, c.to(args[0], kindText), c.to(args[1], kindText), func(v, format value) value {
			parsed := parseFormat(format.s)
			for _, e := range parsed {
				if name == typeDate && (e.field == "FF" || e.field == "TZH") {
					panic(refuse(1821))
				}
			}
			return s.readText(v.s, parsed, typ.kind())
		})
	}
}
