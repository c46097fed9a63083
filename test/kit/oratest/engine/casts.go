package engine

import (
	"encoding/binary"
	"strings"
)

func (c *compiler) cast(sc *scope, x castExpr) *node {
	in, s := c.value(sc, x.x), c.session
	if x.typ.kind() == kindRaw {
		return derived(x.typ, in, func(v value) (value, error) { return s.convert(v, kindRaw) })
	}
	return derived(x.typ, in, func(v value) (value, error) { return s.cast(v, x.typ, true, nil) })
}

// atZone compiles x AT TIME ZONE z.
func (c *compiler) atZone(sc *scope, x zoneExpr) *node {
	in, s := c.to(c.value(sc, x.x), kindTimestampTZ), c.session
	if x.zone == nil {
		return derived(in.typ, in, func(v value) (value, error) {
			v.s = s.zoneName
			return v, nil
		})
	}
	return pair(in.typ, in, c.to(c.value(sc, x.zone), kindText), func(v, zone value) (value, error) {
		if _, ok := location(zone.s); !ok {
			return null, refuse(1882)
		}
		v.s = zone.s
		return v, nil
	})
}

func (c *compiler) extract(sc *scope, x extractExpr) *node {
	in := c.value(sc, x.x)
	s := c.session
	if in.typ.kind() == kindInterval {
		return derived(plain(typeNumber), in, func(v value) (value, error) { return intervalField(v, x.field) })
	}
	return derived(plain(typeNumber), in, func(v value) (value, error) {
		t, err := displayed(v, s)
		if err != nil {
			return null, err
		}
		switch x.field {
		case "YEAR":
			return integer(int64(t.Year())), nil
		case "MONTH":
			return integer(int64(t.Month())), nil
		case "DAY":
			return integer(int64(t.Day())), nil
		}
		if v.kind == kindDate {
			return null, refuse(30076)
		}
		switch x.field {
		case "HOUR":
			return integer(int64(t.Hour())), nil
		case "MINUTE":
			return integer(int64(t.Minute())), nil
		case "SECOND":
			return add(integer(int64(t.Second())), normal(value{kind: kindNumber, n: int64(t.Nanosecond()), scale: 9})), nil
		}
		return null, refuse(907)
	})
}

func intervalField(v value, field string) (value, error) {
	sign := int64(1)
	if v.n < 0 {
		sign = -1
		v = carry(value{kind: kindInterval, n: -v.n, nano: -v.nano})
	}
	switch field {
	case "DAY":
		return integer(sign * (v.n / 86400)), nil
	case "HOUR":
		return integer(sign * (v.n / 3600 % 24)), nil
	case "MINUTE":
		return integer(sign * (v.n / 60 % 60)), nil
	case "SECOND":
		n := add(integer(v.n%60), normal(value{kind: kindNumber, n: int64(v.nano), scale: 9}))
		return multiply(n, integer(sign)), nil
	}
	return null, refuse(907)
}

// keyOf is text that is equal for equal values of one kind.
func keyOf(v value) string {
	b := make([]byte, 0, 15+len(v.s))
	b = append(b, byte(v.kind))
	b = binary.BigEndian.AppendUint64(b, uint64(v.n))
	b = binary.BigEndian.AppendUint16(b, uint16(v.scale))
	b = binary.BigEndian.AppendUint32(b, uint32(v.nano))
	if v.kind != kindTimestampTZ {
		b = append(b, v.s...)
	}
	return string(b)
}

// keyOfRow joins the keys of values, each with its length.
func keyOfRow(row []value) string {
	var b strings.Builder
	for _, v := range row {
		k := keyOf(v)
		b.WriteString(pad(len(k), 9))
		b.WriteString(k)
	}
	return b.String()
}
