package engine

import (
	"strings"
	"unicode/utf8"
)

// cast converts a value to a type with its sizes, and refuses what is too long for it.
// name is the column's for the message.
func (s *session) cast(v value, to dataType, name func() string) value {
	v = s.convert(v, to.kind())
	if v.isNull() {
		return v
	}
	switch to.kind() {
	case kindNumber:
		return fitNumber(v, to)
	case kindText:
		return fitText(v, to, name)
	case kindRaw:
		if to.size > 0 && len(v.s) > to.size {
			panic(refuse(12899, name(), len(v.s), to.size))
		}
	case kindTimestamp, kindTimestampTZ, kindTimestampLTZ:
		return fitTime(v, to.scale)
	}
	return v
}

func fitNumber(v value, to dataType) value {
	if !to.exact {
		return v
	}
	if v.s == "" && v.scale == 0 && to.precision-to.scale >= 19 {
		return v // It fits whatever it is.
	}
	v = round(v, to.scale, false)
	c, scale := v.coefficient()
	digits := len(strings.TrimPrefix(c.Text(10), "-")) - scale
	if !v.isZero() && digits > to.precision-to.scale {
		panic(refuse(1438))
	}
	return v
}

func fitText(v value, to dataType, name func() string) value {
	if to.lob() || to.size == 0 {
		return v
	}
	length := len(v.s)
	if to.chars {
		length = utf8.RuneCountInString(v.s)
	}
	switch {
	case length > to.size:
		panic(refuse(12899, name(), length, to.size))
	case to.padded():
		v.s += strings.Repeat(" ", to.size-length)
	}
	return v
}

// fitTime rounds the fraction of a second to so many digits.
func fitTime(v value, digits int) value {
	if digits >= 9 {
		return v
	}
	unit := int64(1)
	for range 9 - digits {
		unit *= 10
	}
	v.nano = int32((int64(v.nano) + unit/2) / unit * unit)
	return carry(v)
}

func (c *compiler) cast(sc *scope, x castExpr) *node {
	in, s := c.value(sc, x.x), c.session
	return derived(x.typ, in, func(v value) value { return s.cast(v, x.typ, func() string { return "CAST" }) })
}

// atZone compiles x AT TIME ZONE z.
func (c *compiler) atZone(sc *scope, x zoneExpr) *node {
	in := c.to(c.value(sc, x.x), kindTimestampTZ)
	return pair(in.typ, in, c.to(c.value(sc, x.zone), kindText), func(v, zone value) value {
		if _, ok := location(zone.s); !ok {
			panic(refuse(1882))
		}
		v.s = zone.s
		return v
	})
}
