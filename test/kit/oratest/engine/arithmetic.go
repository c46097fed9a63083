package engine

import "time"

func (c *compiler) binary(sc *scope, x binaryExpr) *node {
	switch x.op {
	case "AND", "OR":
		return c.logic(sc, x)
	case "+", "-", "*", "/":
		return c.arithmetic(x.op, c.value(sc, x.l), c.value(sc, x.r))
	case "||":
		return c.concat(c.value(sc, x.l), c.value(sc, x.r))
	}
	return c.comparison(x.op, c.value(sc, x.l), c.value(sc, x.r))
}

// pair is a function of two values that is NULL where one of them is.
func pair(typ dataType, l, r *node, f func(a, b value) value) *node {
	n := (&node{typ: typ, nullable: l.nullable || r.nullable}).inherit(l, r)
	n.eval = func(fr *frame) value {
		a, b := l.eval(fr), r.eval(fr)
		if a.isNull() || b.isNull() {
			return null
		}
		return f(a, b)
	}
	return n
}

func (c *compiler) concat(l, r *node) *node {
	a, b := c.to(l, kindText), c.to(r, kindText)
	typ := varchar(4000)
	if l.typ.lob() || r.typ.lob() {
		typ = plain(typeCLOB)
	} else if l.typ.size > 0 && r.typ.size > 0 && l.typ.isText() && r.typ.isText() {
		typ = varchar(min(l.typ.bytes()+r.typ.bytes(), 4000))
	}
	n := (&node{typ: typ, nullable: l.nullable && r.nullable}).inherit(l, r)
	n.eval = func(f *frame) value {
		x, y := a.eval(f), b.eval(f)
		if !typ.lob() && len(x.s)+len(y.s) > 4000 {
			panic(refuse(1489))
		}
		return text(x.s + y.s)
	}
	return n
}

// arithmetic chooses the operation by the types of its sides.
func (c *compiler) arithmetic(op string, l, r *node) *node {
	x, y := l.typ.kind(), r.typ.kind()
	switch {
	case ranks[x] > 0 && ranks[y] == 0 && (op == "+" || op == "-"):
		return c.moved(op, l, r)
	case ranks[x] > 0 || ranks[y] > 0 || x == kindInterval || y == kindInterval || x == kindDouble || y == kindDouble:
		panic(refuse(932, "NUMBER", string(r.typ.name)))
	}
	return pair(plain(typeNumber), c.to(l, kindNumber), c.to(r, kindNumber), func(a, b value) value {
		switch op {
		case "+":
			return add(a, b)
		case "-":
			return add(a, negate(b))
		case "*":
			return multiply(a, b)
		}
		if b.isZero() {
			panic(refuse(1476))
		}
		return divide(a, b)
	})
}

// carry brings the fraction of a second back into its bounds.
func carry(v value) value {
	const second = int32(time.Second)
	for v.nano < 0 {
		v.n, v.nano = v.n-1, v.nano+second
	}
	for v.nano >= second {
		v.n, v.nano = v.n+1, v.nano-second
	}
	return v
}

// moved adds days or an interval to a time. With a number of days any time
// becomes a DATE.
func (c *compiler) moved(op string, at, by *node) *node {
	if by.typ.kind() == kindInterval {
		typ := at.typ
		return pair(typ, at, by, func(t, d value) value {
			if op == "-" {
				d.n, d.nano = -d.n, -d.nano
			}
			t.n += d.n
			if t.kind == kindDate {
				return t
			}
			t.nano += d.nano
			return carry(t)
		})
	}
	return pair(plain(typeDate), c.to(at, kindDate), c.to(by, kindNumber), func(t, days value) value {
		seconds, ok := round(multiply(days, integer(86400)), 0, false).int64()
		if !ok {
			panic(refuse(1841))
		}
		if op == "-" {
			seconds = -seconds
		}
		t.n += seconds
		if y := t.time().Year(); y < -4712 || y > 9999 {
			panic(refuse(1841))
		}
		return t
	})
}
