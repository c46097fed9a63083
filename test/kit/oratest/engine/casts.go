package engine

import "encoding/binary"

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
