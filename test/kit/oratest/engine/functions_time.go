package engine

import "strings"

var timeFunctions = map[string]function{
	"TO_CHAR":         {1, 2, toChar},
	"TO_NCHAR":        {1, 2, toChar},
	"TO_DATE":         {2, 2, fromText(typeDate)},
	"TO_TIMESTAMP":    {2, 2, fromText(typeTimestamp)},
	"TO_TIMESTAMP_TZ": {2, 2, fromText(typeTimestampTZ)},
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

// toChar writes a time or a number in a format, or a number or text in its usual form.
func toChar(c *compiler, args []*node) *node {
	s, in := c.session, args[0]
	k := in.typ.kind()
	if len(args) == 1 {
		size := 4000
		if k == kindNumber {
			size = 40
		}
		out := *c.to(in, kindText)
		out.typ, out.column = varchar(size), nil
		return &out
	}
	f := args[1].literal
	switch {
	case f == nil:
		panic(unimplemented("TO_CHAR with a format that is no literal"))
	case ranks[k] > 0:
		format := parseFormat(f.s)
		return derived(varchar(75), in, func(v value) value { return text(writeTime(v, format, s)) })
	}
	return derived(varchar(75), c.to(in, kindNumber), func(v value) value { return text(writeNumber(v, f.s)) })
}

// fromText reads a time in a format.
func fromText(name typeName) func(*compiler, []*node) *node {
	typ := plain(name)
	return func(c *compiler, args []*node) *node {
		s := c.session
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
